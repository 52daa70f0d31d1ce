/**
 * Proof by order (B6): a destroy notice, an import that began before it, traffic from before the archive and traffic
 * from after it, in all 24 orders of arrival, with random times of observation.
 *
 * In every order: the machine stays destroyed, traffic observed after the archive restores the device, traffic observed
 * before leaves it archived and is history, and a redelivery changes nothing. The time of observation decides, not the
 * time of arrival; a host whose clock is ahead may send the later traffic first.
 */
import { seededRandom } from '#common/random/index.ts';
import type { InventoryVm } from '#contracts/admin-api/schemas.ts';
import { deviceKeyOf, labelDevice } from '#monitor/devices/index.ts';
import { openScope } from '#monitor/facts/index.ts';
import { importInventory } from '#monitor/inventory/import-inventory.ts';
import { minutesAgo } from '#monitor/testing/facts.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';

export const name = 'archive-orders';

export interface OrderOptions {
  /** Random times of observation for each of the 24 orders. */
  n: number;
  seed: number;
  report(line: string): void;
}

const plants = [
  'arrival_time',
  'tombstone_ignored',
  'unknown_device_lives',
  'later_traffic_archived',
] as const;
type Plant = (typeof plants)[number] | null;
type Step = 'notice' | 'import' | 'before' | 'after';

export async function prove(options: OrderOptions) {
  const { tried, offences } = await runOrders(options, null);
  for (const offence of offences.slice(0, 20)) options.report(offence);
  let caught = 0;
  for (const plant of plants) {
    const found = await runOrders({ ...options, n: 2 }, plant);
    options.report(`planted ${plant}: ${found.offences[0] ?? 'NOT NOTICED'}`);
    if (found.offences.length > 0) caught += 1;
  }
  return {
    claim: `notice, earlier-begun import, traffic before and after the archive in all 24 orders × ${options.n} times: archived or live as observed, no machine comes back, replays change nothing`,
    tried,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

export async function runOrders(
  { n, seed }: Pick<OrderOptions, 'n' | 'seed'>,
  plant: Plant,
): Promise<{ tried: number; offences: string[] }> {
  await using world = await createWorld();
  await world.database.pool.query(
    `insert into leases (name, holder, term, acquired_at, expires_at) values ('proof', 'proof', 1, now(), 'infinity')`,
  );
  const random = seededRandom(seed);
  const offences: string[] = [];
  let tried = 0;
  for (let round = 0; round < n; round += 1) {
    for (const order of permutations(['notice', 'import', 'before', 'after'] as const)) {
      tried += 1;
      const fault = await runOrder(world, tried, order, random, plant);
      if (fault !== null) offences.push(`${order.join(', ')}: ${fault}`);
    }
  }
  return { tried, offences };
}

async function runOrder(
  world: World,
  id: number,
  order: readonly Step[],
  random: () => number,
  plant: Plant,
): Promise<string | null> {
  const scene = createScene(world, id, random, plant);
  if (scene.wasKnown) await scene.importListed();
  const finishImport = await scene.beginImport();
  for (const step of order) {
    if (step === 'notice') await scene.notice();
    else if (step === 'import') await finishImport();
    else await scene.see(step);
  }
  return scene.judge();
}

function createScene(world: World, id: number, random: () => number, plant: Plant) {
  const hex = id.toString(16).padStart(6, '0');
  const mac = `00:1b:21:${hex.match(/../g)!.join(':')}`;
  const address = `10.${(id >> 16) & 255}.${(id >> 8) & 255}.${id & 255}`;
  const key = { segment: 'br0', mac };
  const db = world.database.pool;
  const comesBack = random() < 0.8;
  // `minutesAgo` counts from the start of the process; a time after the archive must be later than now.
  const passed = Math.ceil(process.uptime() / 60);
  const minutes = { before: 2 + Math.floor(random() * 50), after: -2 - passed - Math.floor(random() * 50) };
  let isNoticed = false;
  const machine: InventoryVm = {
    id,
    cluster_id: 7,
    node: null,
    name: `vm-${id}`,
    state: 'running',
    updated_at: '2026-11-21T00:00:00Z',
    interfaces: [{ id, mac_address: mac, bridge: 'br0', vlan: null, addresses: [address] }],
  };
  const notice = { cluster_id: 7, virtual_machines: [{ id, mac_addresses: [mac] }] };
  const run = (listed: Promise<InventoryVm[]>, onAsked = () => {}) =>
    importInventory(
      {
        db: () => world.database.db,
        devices: world.devices,
        events: world.events,
        sites: world.sites,
        onPlaced: (trx, changed) => world.facts.rejudge(changed, openScope(trx)),
      },
      {
        discover: () => Promise.reject(new Error('not asked')),
        listChanges: () => Promise.reject(new Error('not asked')),
        listTargets: () => Promise.reject(new Error('not asked')),
        deliver: () => Promise.reject(new Error('not asked')),
        listScanRequests: () => Promise.reject(new Error('not asked')),
        updateScanRequests: () => Promise.reject(new Error('not asked')),
        listVms: async () => {
          onAsked();
          return { vms: await listed, next_after_id: null, as_of: new Date().toISOString() };
        },
      } as Parameters<typeof importInventory>[1],
      { name: 'proof', holder: 'proof', term: 1 } as Parameters<typeof importInventory>[2],
      async () => true,
    );
  return {
    wasKnown: random() < 0.5,
    importListed: () => run(Promise.resolve([machine])),
    /** The listing begins now; calling the result ends it. */
    async beginImport() {
      const gate = Promise.withResolvers<InventoryVm[]>();
      const asked = Promise.withResolvers<void>();
      const done = run(gate.promise, asked.resolve);
      await asked.promise;
      return async () => {
        if (plant === 'tombstone_ignored') await db.query('delete from vm_tombstones where vm_id = $1', [id]);
        gate.resolve([machine]);
        await done;
      };
    },
    async notice() {
      await world.inventory.applyNotice(notice);
      isNoticed = true;
      if (plant === 'unknown_device_lives') await db.query('delete from retired_macs where mac = $1', [mac]);
      if (plant === 'later_traffic_archived')
        await db.query('update devices set archived_at = svc_now() where mac = $1', [mac]);
    },
    async see(step: 'before' | 'after') {
      if (step === 'after' && !comesBack) return;
      const ago = plant === 'arrival_time' ? (isNoticed ? -2 : 2) : minutes[step];
      const hosts = [{ deviceKey: deviceKeyOf(key), address }];
      const upload = { siteId: world.siteId, minutes: [{ minute: minutesAgo(ago), hosts }] };
      await world.database.db.transaction().execute((trx) => world.devices.recordSightings(trx, [upload]));
    },
    async judge(): Promise<string | null> {
      const fault = await this.look();
      if (fault !== null) return fault;
      // A redelivery, and an import that no longer lists the machine; its rows must not change.
      const before = await fingerprintRows(world, id, mac);
      const { duplicates } = await world.inventory.applyNotice(notice);
      if (duplicates !== 1) return 'a redelivery is no duplicate';
      await run(Promise.resolve([]));
      return (await fingerprintRows(world, id, mac)) === before
        ? null
        : 'a redelivery or a later import changed rows';
    },
    async look(): Promise<string | null> {
      const { rows } = await db.query('select 1 from inventory_vms where vm_id = $1 and retired_at is null', [
        id,
      ]);
      if (rows.length > 0) return 'the machine came back';
      const [device] = await world.devices.findByKeys(world.siteId, [deviceKeyOf(key)]);
      if (!device) return 'the device is missing';
      if ((device.archivedAtMs === null) !== comesBack)
        return `the device is ${comesBack ? 'archived' : 'live'} (seen ${minutes.before} min before${comesBack ? ` and ${-minutes.after} min after` : ''})`;
      if (comesBack && labelDevice(device).source === 'vm') return 'the device is still called by its server';
      const bindings = await world.devices.listBindings(device.id);
      const live = bindings.filter((one) => one.endedAtMs === null);
      const past = bindings.filter((one) => one.endedAtMs !== null);
      if (live.length !== (comesBack ? 1 : 0)) return `${live.length} live claims`;
      if (comesBack && live[0]!.firstSeenMs !== minutesAgo(minutes.after) * 1000)
        return 'the live claim does not begin with what was seen after the archive';
      if (past.length !== 1 || past[0]!.firstSeenMs !== minutesAgo(minutes.before) * 1000)
        return 'what was seen before the archive is not the history';
      return null;
    },
  };
}

/** All rows about this machine or its MAC. */
async function fingerprintRows(world: World, id: number, mac: string): Promise<string> {
  const { rows } = await world.database.pool.query(
    `select coalesce((select v::text from inventory_vms v where vm_id = $1), '')
       || (select coalesce(string_agg(i::text, ' '), '') from inventory_interfaces i where vm_id = $1)
       || (select coalesce(string_agg(t::text, ' '), '') from vm_tombstones t where vm_id = $1)
       || (select coalesce(string_agg(d::text, ' ' order by d.id), '') from devices d where mac = $2)
       || (select coalesce(string_agg(b::text, ' ' order by b.id), '') from ip_bindings b where mac = $2)
       || (select coalesce(string_agg(r::text, ' '), '') from retired_macs r where mac = $2) as text`,
    [id, mac],
  );
  return rows[0].text;
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length < 2) return [[...items]];
  return items.flatMap((item, i) =>
    permutations([...items.slice(0, i), ...items.slice(i + 1)]).map((rest) => [item, ...rest]),
  );
}
