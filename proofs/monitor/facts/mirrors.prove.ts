/**
 * Proof by mirrors and orders: what captures count in common counts once, in any order of arrival.
 *
 * Every case makes the uploads of some sensors at random, captures of which see the same traffic, and delivers them to
 * sites of their own: in every order if there are at most four, else in random ones, some twice under their number as a
 * sensor does whose receipt was lost. Every read of every order must be the same to the byte, and the same as for the plain
 * recording at one capture where all mirrors are whole.
 */

import type { TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { nameApplication } from '#monitor/applications/index.ts';
import { createFactStore, type FactStore, type TopAddress } from '#monitor/facts/index.ts';
import {
  type Random,
  randomUpload,
  sampleAddresses,
  sampleKeys,
  seededBelow,
} from '#monitor/facts/testing/random-uploads.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createMonitorWorld, createSpool, type MonitorWorld, testMinute } from '#monitor/testing/index.ts';

export const name = 'facts-mirrors';

export interface MirrorOptions {
  n: number;
  seed: number;
  report(line: string): void;
}

type Plant = 'sum_of_captures' | 'last_arrival_owns' | 'dedup_missing' | null;
const plants = ['sum_of_captures', 'last_arrival_owns', 'dedup_missing'] as const;
/** Names of the mirrors of one recording, as many as a case has. */
const mirrors = [
  ['eth0', 'uplink'],
  ['br0', 'bridge'],
  ['br1', 'bridge'],
] as const;

export async function prove(options: MirrorOptions) {
  const { offences, deliveries } = await deliverMirrors(options, null);
  for (const offence of offences.slice(0, 5)) options.report(offence);
  let caught = 0;
  for (const plant of plants) {
    const planted = await deliverMirrors({ ...options, n: 3, report: () => {} }, plant);
    options.report(`planted ${plant}: ${planted.offences[0]?.slice(0, 200) ?? 'NOT NOTICED'}`);
    if (planted.offences.length > 0) caught += 1;
  }
  return {
    claim: `one, two and three captures of one recording, in every order and with duplicates (${deliveries} deliveries): every answer is the same to the byte`,
    tried: options.n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

/** Delivers `n` recordings in many ways and compares what is told of each. */
export async function deliverMirrors(
  { n, seed }: MirrorOptions,
  plant: Plant,
): Promise<{ offences: string[]; deliveries: number }> {
  await using world = await createMonitorWorld();
  const random = seededBelow(seed);
  const offences: string[] = [];
  let deliveries = 0;
  for (let i = 0; i < n; i += 1) {
    const count = 2 + random(4);
    const recording = Array.from({ length: count }, () => recordMinute(random));
    const ways: { captures: number; order: number[] }[] = [1, 2, 3].map((captures) => ({
      captures,
      order: recording.map((_, k) => k),
    }));
    for (const order of count <= 3
      ? permutations(count)
      : Array.from({ length: 6 }, () => shuffle(random, count)))
      ways.push({ captures: 3, order });
    let first: string | null = null;
    let withBridge: string | null = null;
    for (const way of ways) {
      const { told, segments } = await deliver(world, random, recording, way, plant);
      deliveries += 1;
      first ??= told;
      if (way.captures > 1) withBridge ??= segments;
      if (told !== first)
        offences.push(
          `case ${i}, ${JSON.stringify(way)}: ${told.slice(0, 400)} instead of ${first.slice(0, 400)}`,
        );
      if (way.captures > 1 && segments !== withBridge)
        offences.push(`case ${i}, ${JSON.stringify(way)}: segments ${segments} instead of ${withBridge}`);
    }
  }
  return { offences, deliveries };
}

/** What one wire carried in a minute, seen without loss. */
function recordMinute(random: Random): TelemetryMinute {
  const origin = { siteId: 0, sensorId: 0 };
  const minutes = [testMinute, testMinute + 60, testMinute - 3600];
  for (;;) {
    const seen = randomUpload(random, { origins: [origin], minutes }).minutes[0];
    if (!seen) continue;
    const { ipPackets: packets } = seen.totals;
    const lossless = { parserDropped: 0, kernelDropped: 0, mergedFrames: 0, detailTruncated: 0 };
    const totals = { ...seen.totals, packets, ...lossless };
    return { ...seen, observedMs: 15_000, totals };
  }
}

/** One delivery at a site of its own, and all that the site says afterwards. */
async function deliver(
  world: MonitorWorld,
  random: Random,
  recording: readonly TelemetryMinute[],
  way: { captures: number; order: readonly number[] },
  plant: Plant,
): Promise<Told> {
  const site = await world.sites.create(systemActor, `Site ${random(1_000_000_000)}`);
  const { token } = await world.sensors.createToken(systemActor, site.id);
  const { credential } = (await world.sensors.enrol({
    token,
    host_name: 'node',
    node: 'node',
    sensor_version: '0.1.0',
  }))!;
  const sensor = (await world.sensors.authenticate(credential))!;
  const spool = createSpool();
  // Each part of the recording is uploaded by each mirror on its own, under a number of its own.
  const uploads = recording.flatMap((minute) =>
    mirrors.slice(0, way.captures).map(([capture, role]) => spool.upload([{ ...minute, capture, role }])),
  );
  const order = way.order.flatMap((k) => mirrors.slice(0, way.captures).map((_, m) => k * way.captures + m));
  for (const k of order) {
    await world.send(uploads[k]!, sensor);
    // The receipt was lost: the very same upload again, before or after it was applied.
    const again = random(3);
    if (again === 0 && random(3) === 0) await world.inbox.drain();
    if (again < 2)
      await world.send(
        plant === 'dedup_missing' ? { ...uploads[k]!, spoolId: createSpool().id } : uploads[k]!,
        sensor,
      );
    if (random(4) === 0) await world.facts.rollUp('all');
  }
  await world.inbox.drain();
  if (plant === 'sum_of_captures') await plantSum(world, site.id);
  if (plant === 'last_arrival_owns' && way.captures > 1) await plantLastArrival(world, site.id, way.order);
  const facts = createFactStore({ db: () => world.database.db, nameApplication });
  return tell(facts, site.id);
}

/** What a site says, as text. */
interface Told {
  /** Everything that counts; what names the captures themselves differs by design. */
  told: string;
  /** The segment of each address, which a bridge alone knows. */
  segments: string;
}

async function tell(facts: FactStore, siteId: number): Promise<Told> {
  const range = { siteId, fromMinute: testMinute - 7200, toMinute: testMinute + 7200 };
  const views = ['outbound', 'inbound', 'internal', 'transit', null] as const;
  const ranked = [];
  for (const direction of views) {
    const { rows, ...sums } = await facts.rankApplications({ ...range, direction, limit: 100 });
    // Which vantage owns depends on what there is; the bytes do not.
    ranked.push(
      sums,
      rows.map(({ vantage: _, ...row }) => row),
    );
  }
  const sightings = [];
  for (const address of sampleAddresses) {
    const read = await facts.readAddress({ ...range, address });
    sightings.push(read.sightings.map(({ captureId: _, ...sighting }) => sighting));
  }
  const addresses = await facts.listTopAddresses(range, 20);
  const told = [
    ranked,
    sightings,
    await facts.sumSite({ ...range, stepSeconds: 60 }),
    await facts.sumDevices(range, sampleKeys),
    sumByAddress(addresses),
  ];
  const segments = addresses.map(({ address, segment }) => [address, segment]);
  return { told: JSON.stringify(told), segments: JSON.stringify(segments) };
}

/** An address that is not unique has a row for each segment, and one for the minutes in which no owner was seen. */
function sumByAddress(rows: readonly TopAddress[]): unknown {
  const sums = new Map<string, number[]>();
  for (const { address, rxBytes, txBytes, packets, lastSeenMinute } of rows) {
    const [rx = 0, tx = 0, count = 0, last = 0] = sums.get(address) ?? [];
    sums.set(address, [rx + rxBytes, tx + txBytes, count + packets, Math.max(last, lastSeenMinute)]);
  }
  return [...sums].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** What the store would say if mirrors were added: everything at one capture. */
async function plantSum({ rows }: MonitorWorld, siteId: number): Promise<void> {
  const first = '(select min(id) from captures where site_id = $1)';
  for (const table of ['host_minutes', 'application_facts'])
    await rows(`update ${table} set capture_id = ${first} where site_id = $1`, [siteId]);
  await forgetRollUps(rows, siteId);
}

/** Planted: the last capture owns the minute; the bytes of the others are lost. */
async function plantLastArrival(
  { rows }: MonitorWorld,
  siteId: number,
  order: readonly number[],
): Promise<void> {
  if (order[0] === 0) return;
  await rows(
    'delete from application_facts where site_id = $1 and ctid not in (select max(ctid) from application_facts where site_id = $1 group by minute, direction)',
    [siteId],
  );
  await forgetRollUps(rows, siteId);
}

/** Lets the facts alone speak. */
async function forgetRollUps(rows: MonitorWorld['rows'], siteId: number): Promise<void> {
  await rows('update rolled_hours set is_dirty = true where site_id = $1', [siteId]);
  await rows('update rolled_days set is_dirty = true where site_id = $1', [siteId]);
  await rows(
    'insert into unjudged_minutes (site_id, minute) select site_id, minute from site_minutes where site_id = $1 on conflict do nothing',
    [siteId],
  );
}

function permutations(count: number): number[][] {
  if (count === 0) return [[]];
  return permutations(count - 1).flatMap((order) =>
    Array.from({ length: count }, (_, at) => [...order.slice(0, at), count - 1, ...order.slice(at)]),
  );
}

function shuffle(random: Random, count: number): number[] {
  return Array.from({ length: count }, (_, k) => [random(1_000_000), k] as const)
    .sort(([a], [b]) => a - b)
    .map(([, k]) => k);
}
