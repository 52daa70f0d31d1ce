import { CodedError } from '#common/errors/index.ts';
import type { CustomerActor } from '#operations/accounts/index.ts';
import type { DemoWorldDeps } from './deps.ts';

const waitMaxMs = 60_000;
const pollMs = 100;

/** Deploys a server into the customer's account unless one runs, and waits until it does. */
export async function ensureRunningServer(
  deps: DemoWorldDeps,
  tenantId: number,
  ownerEmail: string,
): Promise<void> {
  const { accounts, ordering, servers } = deps.features;
  const owner = await accounts.findPersonByEmail(ownerEmail);
  const actor: CustomerActor | null = owner && (await accounts.customerActorOf(owner.id));
  if (actor === null) return;
  const living = { order: 'oldest', limit: 1, statuses: ['queued', 'provisioning', 'running'] } as const;
  if ((await servers.listServers(actor, tenantId, living)).length === 0)
    await ordering.createServer(actor, { tenantId, plan: 'kvm-2', image: 'debian-13', name: 'web-1' });
  const deadline = deps.clock.monotonicMs() + waitMaxMs;
  while ((await servers.countServers(actor, tenantId, { ...living, statuses: ['running'] })) === 0) {
    if (deps.clock.monotonicMs() > deadline) {
      throw new CodedError(
        'demo_world.no_server',
        'The server of the demo world did not come up within a minute.',
      );
    }
    await deps.clock.wait(pollMs);
  }
}
