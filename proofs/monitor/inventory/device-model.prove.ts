/**
 * Proof by model (2.L): devices, their names and their archive, driven by random sightings, imports, notices, stale
 * inventories, names and time, and compared after every step with a model without SQL.
 *
 * The model keeps all observations and notices; everything a page shows follows from them. Every run has its own
 * machines, MACs and time range in one database, whose clock is set by a session setting.
 */
import fc from 'fast-check';
import type pg from 'pg';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { InventoryVm } from '#contracts/admin-api/schemas.ts';
import { createDevices, type Device, deviceKeyOf, labelDevice } from '#monitor/devices/index.ts';
import { createEvents } from '#monitor/events/index.ts';
import { importInventory } from '#monitor/inventory/import-inventory.ts';
import { createInventory } from '#monitor/inventory/index.ts';
import { connectionSecrets, createConnection } from '#monitor/operations-client/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createSites } from '#monitor/sites/index.ts';
import { createVendors } from '#monitor/vendors/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import type { Queryable } from '#service-kit/postgres/queryable.ts';
import { createTestSecrets } from '#service-kit/secrets/testing/test-secrets.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { type Listing, Model, type Names } from './device-model.ts';

export const name = 'device-model';

export interface ModelOptions {
  /** Runs of at most twenty steps. */
  n: number;
  seed: number;
  report(line: string): void;
}

const plants = [
  'comes_back_late',
  'stale_inventory_applied',
  'server_before_operator',
  'replay_applied',
] as const;
type Plant = (typeof plants)[number] | null;

/** How often the database is vacuumed, and when first: the rows of a few runs show which index is used. */
const runsPerVacuum = 250;
const vacuumAfterRuns = 40;

export async function prove(options: ModelOptions) {
  const { steps, fault } = await runModel(options, null);
  if (fault !== null) options.report(fault);
  let caught = 0;
  for (const plant of plants) {
    const found = await runModel({ ...options, n: 150 }, plant);
    options.report(`planted ${plant}: ${found.fault?.split('\n')[0] ?? 'NOT NOTICED'}`);
    if (found.fault !== null) caught += 1;
  }
  return {
    claim: `devices, labels, matches, archives and claims as their model has them after each of ${steps} steps`,
    tried: options.n,
    failures: fault === null ? 0 : 1,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

export async function runModel(
  { n, seed }: Pick<ModelOptions, 'n' | 'seed'>,
  plant: Plant,
): Promise<{ steps: number; fault: string | null }> {
  await using stage = await openStage(plant);
  let steps = 0;
  const property = fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 20 }), async (list) => {
    const run = await stage.begin();
    for (const one of list) {
      steps += 1;
      const fault = await perform(run, one);
      if (fault !== null) throw new Error(`${fault}, after ${JSON.stringify(one)}`);
    }
    await run.import([]);
  });
  const result = await fc.check(property, {
    numRuns: n,
    seed,
    endOnFailure: plant !== null,
  });
  if (!result.failed) return { steps, fault: null };
  const { errorInstance, counterexample } = result;
  const message = errorInstance instanceof Error ? errorInstance.message : String(errorInstance);
  return { steps, fault: `${message}\n${JSON.stringify(counterexample)}` };
}

/** MACs of a run: two with manufacturers, one without, one randomized; two segments; machines 0 to 2. */
const macs = fc.nat(3);
const machines = fc.nat(2);
const listing = fc.uniqueArray(fc.record({ vm: machines, macs: fc.uniqueArray(macs, { maxLength: 2 }) }), {
  selector: (one) => one.vm,
  maxLength: 3,
});
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('see' as const),
      mac: macs,
      segment: fc.nat(1),
      address: fc.nat(2),
      ago: fc.integer({ min: -3, max: 90 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('import' as const), list: listing }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('meanwhile' as const),
      list: listing,
      vm: machines,
      macs: fc.uniqueArray(macs, { maxLength: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stale' as const), list: listing }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('notice' as const),
      vm: machines,
      macs: fc.uniqueArray(macs, { maxLength: 2 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('name' as const),
      mac: macs,
      segment: fc.nat(1),
      text: fc.constantFrom('Relay', 'Core switch', ''),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), minutes: fc.integer({ min: 1, max: 40 }) }),
  },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

interface Run extends Names {
  model: Model;
  import(list: Listing): Promise<void>;
  perform(one: Step): Promise<void>;
  look(): Promise<{ devices: Device[]; claims: Map<number, string[]>; live: number[] }>;
}

async function perform(run: Run, one: Step): Promise<string | null> {
  await run.perform(one);
  if (one.kind === 'wait') return null;
  const { model } = run;
  const found = await run.look();
  const live = [...model.live.keys()].sort();
  if (live.join() !== found.live.join()) return `machines ${found.live} live in place of ${live}`;
  if (found.devices.length !== model.devices.size)
    return `${found.devices.length} devices in place of ${model.devices.size}`;
  const byKey = new Map(found.devices.map((device) => [deviceKeyOf(device), device]));
  for (const [key, expected] of model.devices) {
    const [segment, mac] = key.split('|').map(Number) as [number, number];
    const device = byKey.get(`br${segment}|${run.macOf(mac)}`);
    if (!device) return `${key} is missing`;
    const isArchived = model.isArchived(expected);
    if ((device.archivedAtMs !== null) !== isArchived) return `${key} is ${isArchived ? 'live' : 'archived'}`;
    const label = model.label(key, expected, run);
    if (labelDevice(device).text !== label)
      return `${key} is called ${labelDevice(device).text} in place of ${label}`;
    const claims = (found.claims.get(device.id) ?? []).sort().join();
    if (claims !== model.claims(expected).join())
      return `${key} claims ${claims || 'nothing'} in place of ${model.claims(expected)}`;
    const match = device.match && `${device.match.vmName} ${device.match.endedAtMs !== null}`;
    const wanted = expected.match && `${run.vmName(expected.match.vm)} ${expected.match.isEnded}`;
    if (match !== wanted) return `${key} is matched to ${match} in place of ${wanted}`;
  }
  return null;
}

/** One connection, so that its clock applies to every statement. */
async function openStage(plant: Plant) {
  const database = await createTestDatabase('monitor');
  const { pool, db } = createPool(database.url, 1, { prepares: 'always' });
  // Durability does not matter here.
  await pool.query('set synchronous_commit = off');
  await pool.query(
    `insert into leases (name, holder, term, acquired_at, expires_at) values ('proof', 'proof', 1, now(), 'infinity')`,
  );
  const base = { db: () => db, clock: systemClock, reporter: silentReporter };
  const events = createEvents(base);
  const sites = createSites(base);
  const connection = createConnection({
    ...base,
    secrets: createTestSecrets({ ...base, program: 'monitor', columns: connectionSecrets }),
  });
  const devices = createDevices({ ...base, events, vendors: createVendors({ ...base, registryUrl: null }) });
  const onPlaced = async () => {};
  const inventory = createInventory({
    ...{ ...base, connection, devices, events, sites, onPlaced },
    intervalSeconds: 60,
  });
  const { id: siteId } = await sites.create(systemActor, 'Site');
  await sites.mapCluster(systemActor, 7, siteId);
  let runs = 0;
  const startSecond = Math.floor(Date.now() / 60_000) * 60;
  return {
    async begin(): Promise<Run> {
      runs += 1;
      // The test server has no autovacuum: without statistics the planner assumes empty tables and reads whole indexes,
      // so that each run would cost more than the previous one.
      if (runs % runsPerVacuum === vacuumAfterRuns) await pool.query('vacuum analyze');
      const world = { db, pool, siteId, devices, events, inventory, sites, plant };
      const run = createRun(world, runs, startSecond + runs * 60_000);
      await run.perform({ kind: 'wait', minutes: 0 });
      return run;
    },
    async [Symbol.asyncDispose]() {
      await db.destroy();
      await database.drop();
    },
  };
}

interface Stage {
  db: Queryable;
  pool: pg.Pool;
  siteId: number;
  devices: ReturnType<typeof createDevices>;
  events: ReturnType<typeof createEvents>;
  inventory: ReturnType<typeof createInventory>;
  sites: ReturnType<typeof createSites>;
  plant: Plant;
}

function createRun(stage: Stage, number: number, startSecond: number): Run {
  const { devices, inventory, siteId, pool, plant } = stage;
  const model = new Model();
  const tail = number.toString(16).padStart(4, '0').match(/../g)!.join(':');
  const prefixes = ['00:1b:21:00', '00:1b:21:01', '04:00:01:00', '02:00:00:00'];
  const macOf = (mac: number) => `${prefixes[mac]}:${tail}`;
  const idOf = (vm: number) => number * 10 + vm;
  const vmName = (vm: number) => `vm-${number}-${vm}`;
  /** Each device has its own addresses; shared addresses are covered by another proof. */
  const addressOf = (mac: number, segment: number, address: number) =>
    `10.${number >> 8}.${number & 255}.${mac * 20 + segment * 8 + address}`;
  const isOnStage = new Set<string>();
  const toVm = ({ vm, macs: listed }: Listing[number]): InventoryVm => ({
    id: idOf(vm),
    cluster_id: 7,
    node: null,
    name: vmName(vm),
    state: 'running',
    updated_at: '2026-11-21T00:00:00Z',
    interfaces: listed.map((mac) => ({
      id: idOf(vm) * 10 + mac,
      mac_address: macOf(mac),
      bridge: null,
      vlan: null,
      addresses: [],
    })),
  });
  const nowSecond = () => startSecond + model.now * 60;
  const importList = async (list: Listing, staleMinutes = 0, meanwhile = async () => {}) => {
    const asOf = new Date((nowSecond() - staleMinutes * 60) * 1000).toISOString();
    const client = {
      listVms: async () => {
        await meanwhile();
        return { vms: list.map(toVm), next_after_id: null, as_of: asOf };
      },
    } as unknown as Parameters<typeof importInventory>[1];
    const lease = { name: 'proof', holder: 'proof', term: 1 } as Parameters<typeof importInventory>[2];
    await importInventory(
      { db: () => stage.db, devices, events: stage.events, sites: stage.sites, onPlaced: async () => {} },
      client,
      lease,
      async () => true,
    );
  };
  const notify = async (vm: number, told: readonly number[]) => {
    if (plant === 'replay_applied')
      await pool.query('delete from vm_tombstones where vm_id = $1', [idOf(vm)]);
    await inventory.applyNotice({
      cluster_id: 7,
      virtual_machines: [{ id: idOf(vm), mac_addresses: told.map(macOf) }],
    });
  };
  return {
    model,
    macOf,
    vmName,
    import: (list) => importList(list),
    async perform(one) {
      switch (one.kind) {
        case 'wait':
          model.now += one.minutes;
          // Half a minute into it, so that the run's own duration changes no minute.
          await pool.query(
            `select set_config('svc.clock_offset', (to_timestamp($1) - clock_timestamp())::text, false)`,
            [nowSecond() + 30],
          );
          return;
        case 'see': {
          const late = plant === 'comes_back_late' ? Math.min(one.ago, -1) : one.ago;
          const address = addressOf(one.mac, one.segment, one.address);
          const deviceKey = `br${one.segment}|${macOf(one.mac)}`;
          isOnStage.add(deviceKey);
          const minutes = [{ minute: nowSecond() - late * 60, hosts: [{ deviceKey, address }] }];
          await stage.db.transaction().execute((trx) => devices.recordSightings(trx, [{ siteId, minutes }]));
          // The archive of a minute happens half a minute into it.
          model.see(one.mac, one.segment, address, model.now - one.ago - 0.5);
          return;
        }
        case 'import':
          await importList(one.list);
          model.import(one.list);
          return;
        case 'meanwhile':
          await importList(one.list, 0, () => notify(one.vm, one.macs));
          model.importWithNotice(one.list, one.vm, one.macs);
          return;
        case 'stale':
          if (plant === 'stale_inventory_applied') await importList(one.list);
          else await importList(one.list, 16).catch(() => {});
          return;
        case 'notice':
          await notify(one.vm, one.macs);
          model.notice(one.vm, one.macs);
          return;
        case 'name': {
          const [device] = await devices.findByKeys(siteId, [`br${one.segment}|${macOf(one.mac)}`]);
          if (!device) return;
          await devices.name(systemActor, { siteId, deviceId: device.id, name: one.text });
          if (one.text === '') model.names.delete(one.mac);
          else model.names.set(one.mac, one.text);
        }
      }
    },
    async look() {
      const found = await devices.findByKeys(siteId, [...isOnStage]);
      const claims = Map.groupBy(
        await devices.listClaims(found.map(({ id }) => id)),
        (claim) => claim.deviceId,
      );
      const { rows } = await pool.query<{ id: number }>(
        'select vm_id as id from inventory_vms where retired_at is null and vm_id between $1 and $2 order by 1',
        [idOf(0), idOf(2)],
      );
      const shown =
        plant === 'server_before_operator'
          ? found.map((one) => (one.match ? { ...one, operatorName: null } : one))
          : found;
      return {
        devices: shown,
        claims: new Map([...claims].map(([id, list]) => [id, list.map(({ address }) => address)])),
        live: rows.map((row) => row.id - idOf(0)),
      };
    },
  };
}
