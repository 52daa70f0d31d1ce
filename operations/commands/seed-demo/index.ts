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
import { statusOf } from '#operations/servers/index.ts';
import { seedSignOn } from '#service-kit/sign-on/index.ts';
import { type DemoFile, readDemoFile, writeDemoFile } from './demo-file.ts';
import { seedCluster, seedOffers } from './seed-catalog.ts';
import { seedCustomers, seedProject } from './seed-customers.ts';
import { giveThemAPast, type SimulatedSite, seedSimulatedServers } from './seed-simulated.ts';

export function createDemoWorld(deps: DemoWorldDeps): Part {
  const file = join(deps.dir, 'demo.json');
  return {
    name: 'demo world',
    async start() {
      const { features } = deps;
      const { accounts, signOn, settings } = features;
      const locationId = await seedOffers(features);
      const known = await readDemoFile(file);
      const people = known ?? (await seedCustomers(features));
      const site = readSimulatedSite(settings.demoSimulatedSite, known);
      const simulated = site && (await seedSimulatedServers({ features, locationId }, site));
      const driver = deps.driver ?? 'simulated';
      const elsewhere = site?.pool.prefix ?? null;
      const world: DemoFile = {
        ...people,
        cluster_id: await seedCluster(features, { locationId, driver, elsewhere }),
        ...(simulated && { simulated_cluster_id: simulated.clusterId }),
      };
      await seedProject(features);
      if (settings.demoSignOn)
        await seedSignOn(signOn, systemActor, settings.demoSignOn, accounts.people.findByEmail);
      await ensureRunningServers(deps, world);
      if (site && simulated) {
        await waitUntilRunning(deps, simulated.ordered);
        await giveThemAPast(features, simulated.ordered, site.days);
      }
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
  { tenant_id: tenantId, customer, simulated_cluster_id: simulatedId }: DemoFile,
): Promise<void> {
  const { accounts, ordering, servers } = deps.features;
  const owner = await accounts.findPersonByEmail(customer.email);
  const actor: CustomerActor | null = owner && (await accounts.customerActorOf(owner.id));
  if (actor === null) return;
  const living = { order: 'oldest', limit: 100, statuses: ['queued', 'provisioning', 'running'] } as const;
  const there = await servers.listServers(actor, tenantId, living);
  const own = there.find(({ clusterId }) => clusterId !== simulatedId);
  if (own) return waitUntilRunning(deps, [own.id]);
  const ordered: number[] = [];
  for (const server of deps.driver === 'lab' ? [first, second] : [first])
    ordered.push((await ordering.createServer(actor, { tenantId, ...server })).serverId);
  return waitUntilRunning(deps, ordered);
}

async function waitUntilRunning(deps: DemoWorldDeps, ids: readonly number[]): Promise<void> {
  const { features, clock } = deps;
  const deadline = clock.monotonicMs() + waitMaxMs;
  for (const id of ids)
    while (statusOf((await features.servers.findServer(systemActor, null, id))!) !== 'running') {
      if (clock.monotonicMs() > deadline) {
        throw new CodedError(
          'demo_world.no_server',
          'The servers of the demo world did not come up within a minute.',
        );
      }
      await clock.wait(pollMs);
    }
}

/** Null for a demo of before, whose cluster would take the servers: its data goes on without them. */
function readSimulatedSite(setting: string | null, known: DemoFile | null): SimulatedSite | null {
  if (setting === null || (known !== null && known.simulated_cluster_id === undefined)) return null;
  return JSON.parse(setting) as SimulatedSite;
}
