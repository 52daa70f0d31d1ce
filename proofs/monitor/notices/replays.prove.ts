/**
 * Proof by repetition: a destroy notice counts once, for any sender, place, time and number of repetitions (F-5), and
 * from the moment a new secret is shown no replica accepts the old one (F-6).
 *
 * Replicas are separate monitors on one database: own pool, own features, own HTTP server. Between a notice and its
 * replays come imports, traffic that restores the device, and other notices; the replays must change no row.
 */

import { createTestClock } from '#common/clock/index.ts';
import { seededRandom } from '#common/random/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { type DestroyNoticeResult, noticePath, signNotice } from '#contracts/destroy-notice/index.ts';
import { createDevices } from '#monitor/devices/index.ts';
import { openScope } from '#monitor/facts/index.ts';
import { createInventory, type Inventory } from '#monitor/inventory/index.ts';
import { type Connection, connectionSecrets, createConnection } from '#monitor/operations-client/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { registerNotices } from '#monitor/surfaces/notices/index.ts';
import { minutesAgo } from '#monitor/testing/facts.ts';
import { createWorld, fingerprintTables, type World } from '#monitor/testing/world.ts';
import { createHttpServer } from '#service-kit/http/index.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { createTestSecrets } from '#service-kit/secrets/testing/test-secrets.ts';

export const name = 'notice-replays';

export interface ReplayOptions {
  /** Number of replays; a twenty-fifth as many rotations. */
  n: number;
  seed: number;
  report(line: string): void;
}

type Plant = 'by_arrival' | 'cached_secret' | null;

export async function prove(options: ReplayOptions) {
  const result = await replay(options, null);
  for (const offence of result.offences.slice(0, 20)) options.report(offence);
  let caught = 0;
  for (const plant of ['by_arrival', 'cached_secret'] as const) {
    const { offences } = await replay({ ...options, n: 100 }, plant);
    options.report(`planted ${plant}: ${offences[0] ?? 'NOT NOTICED'}`);
    if (offences.length > 0) caught += 1;
  }
  const { notices, replays, rotations, answers } = result;
  return {
    claim: `${notices} notices, each repeated at once over two replicas, after imports and after its device came back: every machine is applied once and no replay changes a row; over ${rotations} rotations and four replicas no old signature passes (${answers} answers)`,
    tried: replays + rotations,
    failures: result.offences.length,
    plantedBugsCaught: `${caught} of 2`,
  };
}

export interface ReplayResult {
  notices: number;
  replays: number;
  rotations: number;
  answers: number;
  offences: string[];
}

const nowSeconds = 1_790_000_000;
const secret = 'a-secret-that-both-sides-know-well';
/** Replays of one notice. */
const timesEach = 12;

export async function replay(
  { n, seed }: Pick<ReplayOptions, 'n' | 'seed'>,
  plant: Plant,
): Promise<ReplayResult> {
  await using world = await createWorld();
  await using replicas = await openReplicas(world, plant);
  const result: ReplayResult = { notices: 0, replays: 0, rotations: 0, answers: 0, offences: [] };
  await world.connection.setNoticeSecret(systemActor, secret);
  // Small runs leave this to a separate test.
  if (n >= 100) await rejectUnfit(replicas, result);
  const random = seededRandom(seed);
  while (result.replays < n) await repeatNotices(world, replicas, random, result);
  const rotations = Math.max(2, Math.ceil(n / 25));
  for (let i = 0; i < rotations; i += 1) await rotate(replicas, i, result);
  return result;
}

interface Replica {
  connection: Connection;
  send(body: string, key?: string, offset?: number): Promise<{ status: number; result: DestroyNoticeResult }>;
}

async function openReplicas(world: World, plant: Plant): Promise<Replica[] & AsyncDisposable> {
  const opened = await Promise.all([...Array(4)].map(() => openReplica(world, plant)));
  return Object.assign(
    opened.map(({ replica }) => replica),
    {
      async [Symbol.asyncDispose]() {
        for (const { close } of opened) await close();
      },
    },
  );
}

async function openReplica(world: World, plant: Plant) {
  const { db } = createPool(world.database.url, 4);
  const clock = createTestClock(nowSeconds * 1000);
  const base = { db: () => db, clock, reporter: silentReporter };
  const connection = createConnection({
    ...base,
    secrets: createTestSecrets({ ...base, program: 'monitor', columns: connectionSecrets }),
  });
  const devices = createDevices({ ...base, events: world.events, vendors: world.vendors });
  const inventory = createInventory({
    ...base,
    connection,
    devices,
    events: world.events,
    sites: world.sites,
    onPlaced: (trx, changed) => world.facts.rejudge(changed, openScope(trx)),
    intervalSeconds: 60,
  });
  const server = await createHttpServer({
    host: '127.0.0.1',
    port: 0,
    portSetting: 'none',
    reporter: silentReporter,
    routes: (app) =>
      registerNotices(app, {
        clock,
        connection: plant === 'cached_secret' ? cachingSecret(connection) : connection,
        inventory: plant === 'by_arrival' ? forgetting(world, inventory) : inventory,
      }),
  });
  const replica: Replica = {
    connection,
    async send(body, key = secret, offset = 0) {
      const stamp = String(nowSeconds + offset);
      const { statusCode, payload } = await server.app.inject({
        method: 'POST',
        url: noticePath,
        headers: {
          'content-type': 'application/json',
          'x-operations-timestamp': stamp,
          'x-operations-signature': signNotice(key, stamp, Buffer.from(body)),
        },
        payload: body,
      });
      return { status: statusCode, result: JSON.parse(payload) as DestroyNoticeResult };
    },
  };
  const close = async () => {
    await server.stop();
    await db.destroy();
  };
  return { replica, close };
}

/** Planted: an applied notice is remembered only until the next one. */
function forgetting(world: World, inventory: Inventory): Pick<Inventory, 'applyNotice'> {
  let last = '';
  return {
    async applyNotice(notice) {
      const key = JSON.stringify(notice);
      if (key !== last) {
        await world.database.pool.query(
          'delete from vm_tombstones where cluster_id = $1 and vm_id = any($2)',
          [notice.cluster_id, notice.virtual_machines.map((vm) => vm.id)],
        );
      }
      last = key;
      return inventory.applyNotice(notice);
    },
  };
}

/** Planted: the secret is read once and cached. */
function cachingSecret(connection: Connection): Pick<Connection, 'readNoticeSecret' | 'countRefusals'> {
  let known: { secret: string | null; uses: number } | null = null;
  return {
    countRefusals: (count) => connection.countRefusals(count),
    async readNoticeSecret() {
      if (!known || known.uses > 7) known = { secret: await connection.readNoticeSecret(), uses: 0 };
      known.uses += 1;
      return known.secret;
    },
  };
}

const noticeOf = (vms: readonly object[], clusterId = 7, destroyedAt?: string) =>
  JSON.stringify({
    cluster_id: clusterId,
    ...(destroyedAt ? { destroyed_at: destroyedAt } : {}),
    virtual_machines: vms,
  });

async function rejectUnfit(replicas: readonly Replica[], result: ReplayResult): Promise<void> {
  const machines = (count: number) => [...Array(count)].map((_, i) => ({ id: 900_000_000 + i }));
  const none = noticeOf([]);
  const cases: [string, string, number][] = [
    ['101 machines', noticeOf(machines(101)), 422],
    ['100 machines', noticeOf(machines(100)), 200],
    ['no machine', none, 200],
    ['64 KiB', none + ' '.repeat(64 * 1024 - none.length), 200],
    ['a byte more than 64 KiB', none + ' '.repeat(64 * 1024 - none.length + 1), 413],
    ['an unknown cluster', noticeOf(machines(3), 4_242), 200],
  ];
  for (const [what, body, expected] of cases) {
    const { status } = await replicas[0]!.send(body);
    if (status !== expected) result.offences.push(`${what} is answered with ${status}`);
  }
}

let nextVm = 1;

interface Machine {
  id: number;
  mac: string;
  address: string;
  isListed: boolean;
}

/** Some notices, delivered concurrently many times, then again after all possible changes in between. */
async function repeatNotices(
  world: World,
  replicas: readonly Replica[],
  random: () => number,
  result: ReplayResult,
): Promise<void> {
  const notices = [...Array(5)].map(() => makeNotice(random));
  const machines = notices.flatMap((one) => one.machines);
  await see(world, machines, 3);
  world.operations.vms = machines.filter((machine) => machine.isListed).map(toVm);
  await world.inventory.loop.runOnce();
  result.notices += notices.length;
  for (const { body, machines: told } of notices) {
    const answers = await Promise.all(
      [...Array(4)].map((_, i) => replicas[i % 2]!.send(body, secret, i - 2)),
    );
    const duplicates = answers.reduce((sum, { result: counts }) => sum + counts.duplicates, 0);
    result.replays += 3;
    if (duplicates !== told.length * 3)
      result.offences.push(`4 deliveries at once of ${told.length} machines: ${duplicates} duplicates`);
  }
  // Devices are seen again, and an inventory without the machines is imported.
  world.operations.vms = [];
  await world.inventory.loop.runOnce();
  await see(
    world,
    machines.filter(() => random() < 0.5),
    -5,
  );
  const before = await fingerprintTables(world.database);
  for (const { machines: told, clusterId } of notices) {
    const vms = told.map(({ id, mac }) => ({ id, mac_addresses: [mac] }));
    const sends = [...Array(timesEach - 3)].map((_, i) => {
      const order = i % 2 === 0 ? vms : vms.toReversed();
      const destroyedAt = i % 3 === 0 ? `2026-11-2${i % 9}T00:00:00Z` : undefined;
      return replicas[i % 2]!.send(noticeOf(order, clusterId, destroyedAt), secret, (i % 7) * 40 - 120);
    });
    for (const { status, result: counts } of await Promise.all(sends)) {
      result.replays += 1;
      if (status !== 200 || counts.duplicates !== told.length || counts.destroyed_applied !== 0)
        result.offences.push(`a replay is answered with ${status} ${JSON.stringify(counts)}`);
    }
  }
  if ((await fingerprintTables(world.database)) !== before) result.offences.push('a replay changed rows');
}

function makeNotice(random: () => number) {
  const clusterId = random() < 0.15 ? 4_242 : 7;
  const machines: Machine[] = [...Array(1 + Math.floor(random() * 4))].map(() => {
    const id = nextVm;
    nextVm += 1;
    const tail = [id >> 16, (id >> 8) & 255, id & 255].map((byte) => byte.toString(16).padStart(2, '0'));
    const address = `10.${(id >> 16) & 255}.${(id >> 8) & 255}.${id & 255}`;
    return { id, mac: `00:1b:21:${tail.join(':')}`, address, isListed: clusterId === 7 && random() < 0.7 };
  });
  const vms = machines.map(({ id, mac }) => ({ id, mac_addresses: [mac] }));
  return { machines, clusterId, body: noticeOf(vms, clusterId) };
}

function toVm({ id, mac, address }: Machine) {
  return {
    id,
    cluster_id: 7,
    node: null,
    name: `vm-${id}`,
    state: 'running',
    updated_at: '2026-11-21T00:00:00Z',
    interfaces: [{ id, mac_address: mac, bridge: null, vlan: null, addresses: [address] }],
  };
}

async function see(world: World, machines: readonly Machine[], ago: number): Promise<void> {
  const hosts = machines.map(({ mac, address }) => ({ deviceKey: `br0|${mac}`, address }));
  const upload = { siteId: world.siteId, minutes: [{ minute: minutesAgo(ago), hosts }] };
  await world.database.db.transaction().execute((trx) => world.devices.recordSightings(trx, [upload]));
}

/** F-6: notices continue while the secret is changed; from the answer on the old one is invalid. */
async function rotate(replicas: readonly Replica[], round: number, result: ReplayResult): Promise<void> {
  const body = noticeOf([]);
  const old = (await replicas[0]!.connection.readNoticeSecret())!;
  for (const replica of replicas) await replica.send(body, old);
  let isOver = false;
  const traffic = replicas.map(async (replica) => {
    while (!isOver) await replica.send(body, old);
  });
  const fresh = await replicas[round % 4]!.connection.createNoticeSecret(systemActor);
  const answers = await Promise.all(
    replicas.flatMap((replica) => [
      replica.send(body, old).then(({ status }) => status === 401),
      replica.send(body, fresh).then(({ status }) => status === 200),
      replica.send(body, old).then(({ status }) => status === 401),
    ]),
  );
  isOver = true;
  await Promise.all(traffic);
  result.rotations += 1;
  result.answers += answers.length;
  const wrong = answers.filter((isRight) => !isRight).length;
  if (wrong > 0)
    result.offences.push(`after rotation ${round + 1} ${wrong} of ${answers.length} answers are wrong`);
}
