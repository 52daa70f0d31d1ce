import { systemJob } from '#operations/accounts/index.ts';
import { withFeatures } from './with-features.ts';

/** The work itself is done by whichever `serve` runs. */
export async function retryProvisioningCommand(serverId: number): Promise<void> {
  await withFeatures(async ({ servers }) => {
    await servers.retryProvisioning(systemJob('retry-provisioning'), serverId);
    process.stdout.write(`server ${serverId} is queued again\n`);
  });
}

/** Ends a failed provisioning; a removal is carried out by whichever `serve` runs. */
export async function resolveProvisioningCommand(serverId: number, resolution: 'repaired' | 'remove') {
  await withFeatures(async ({ servers }) => {
    await servers.resolveProvisioning(systemJob('retry-provisioning'), serverId, resolution);
    const said = resolution === 'repaired' ? 'is ready' : 'is being removed';
    process.stdout.write(`server ${serverId} ${said}\n`);
  });
}
