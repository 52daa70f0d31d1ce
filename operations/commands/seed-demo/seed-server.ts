import { CodedError } from '#common/errors/index.ts';
import type { CustomerActor } from '#operations/accounts/index.ts';
import type { DemoWorldDeps } from './deps.ts';

const waitMaxMs = 60_000;
const pollMs = 100;

const first = { plan: 'kvm-2', image: 'debian-13', name: 'web-1' };
/** In the lab its services are packages of a distribution, those of the first are not. */
const second = { plan: 'kvm-1', image: 'ubuntu-24.04', name: 'db-1' };

/** Deploys servers into the customer's account unless it has one, and waits until they run. */
export async function ensureRunningServers(
  deps: DemoWorldDeps,
  tenantId: number,
  ownerEmail: string,
): Promise<void> {
  const { accounts, ordering, servers } = deps.features;
  const owner = await accounts.findPersonByEmail(ownerEmail);
  const actor: CustomerActor | null = owner && (await accounts.customerActorOf(owner.id));
  if (actor === null) return;
  const living = { order: 'oldest', limit: 1, statuses: ['queued', 'provisioning', 'running'] } as const;
  const isNew = (await servers.listServers(actor, tenantId, living)).length === 0;
  const wanted = deps.driver === 'lab' ? [first, second] : [first];
  if (isNew) for (const server of wanted) await ordering.createServer(actor, { tenantId, ...server });
  const needed = isNew ? wanted.length : 1;
  const deadline = deps.clock.monotonicMs() + waitMaxMs;
  while ((await servers.countServers(actor, tenantId, { ...living, statuses: ['running'] })) < needed) {
    if (deps.clock.monotonicMs() > deadline) {
      throw new CodedError(
        'demo_world.no_server',
        'The servers of the demo world did not come up within a minute.',
      );
    }
    await deps.clock.wait(pollMs);
  }
}
