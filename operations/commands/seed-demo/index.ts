/**
 * The demo world: an operator, two customers with credit and keys, plans, images, a location with a cluster, and
 * running servers, all made through the same operations that customers use.
 *
 * Seeding is idempotent: what is there is left as it is. `demo.json` is written last, by rename, readable by its owner
 * alone. Secrets can't be read back out of the database, so when the file is missing new ones are made and the old keys
 * and token are revoked.
 */
import { join } from 'node:path';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { type CustomerActor, systemActor } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import { seedSignOn } from '#service-kit/sign-on/index.ts';
import { readDemoFile, writeDemoFile } from './demo-file.ts';
import { seedCatalog } from './seed-catalog.ts';
import { seedCustomers, seedProject } from './seed-customers.ts';

export function createDemoWorld(deps: DemoWorldDeps): Part {
  const file = join(deps.dir, 'demo.json');
  return {
    name: 'demo world',
    async start() {
      const clusterId = await seedCatalog(deps.features, deps.driver ?? 'simulated');
      const known = await readDemoFile(file);
      const world = known ?? { ...(await seedCustomers(deps.features)), cluster_id: clusterId };
      await seedProject(deps.features);
      const { accounts, signOn, settings } = deps.features;
      if (settings.demoSignOn)
        await seedSignOn(signOn, systemActor, settings.demoSignOn, accounts.people.findByEmail);
      await ensureRunningServers(deps, world.tenant_id, world.customer.email);
      if (known === null) await writeDemoFile(file, world);
      deps.reporter.info('demo world is ready', { file, is_new: known === null });
    },
    async stop() {},
  };
}

/** What the demo world is seeded through. */
interface DemoWorldDeps {
  features: Features;
  reporter: Reporter;
  clock: Clock;
  /** What runs its guests; default `simulated`. */
  driver?: 'simulated' | 'lab';
  /** Where `demo.json` goes. */
  dir: string;
}

const waitMaxMs = 60_000;
const pollMs = 100;

const first = { plan: 'kvm-2', image: 'debian-13', name: 'web-1' };
/** In the lab its services are packages of a distribution, those of the first are not. */
const second = { plan: 'kvm-1', image: 'ubuntu-24.04', name: 'db-1' };

/** Deploys servers into the customer's account unless it has one, and waits until they run. */
async function ensureRunningServers(
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
