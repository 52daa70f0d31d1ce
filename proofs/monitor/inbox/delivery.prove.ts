/**
 * Proof by delivery: each window is a new spool whose uploads come in a random order, many of them twice, some of them late:
 * after an hour, around the end of their tombstones at 48 hours, after a week, after 89 days.
 *
 * Afterwards every total is what the spool held once, and every late duplicate was called one.
 */
import { seededRandom } from '#common/random/index.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  type MonitorWorld,
  testMinute,
} from '#monitor/testing/index.ts';
import { moveDatabaseClock } from '#service-kit/testing/index.ts';

export const name = 'inbox-delivery';

const uploadsOfWindow = 8;
/** When duplicates come, after their upload was stored; the database's clock goes on by the differences. */
export const lateness = [
  '0 seconds',
  '1 hour',
  '47 hours 59 minutes',
  '48 hours 1 minute',
  '7 days',
  '89 days',
] as const;
const address = '192.0.2.10';

export interface DeliveryOptions {
  /** Windows. */
  n: number;
  seed: number;
  report(line: string): void;
}

type Plant = 'tombstones_alone' | 'applied_twice' | 'gap_skipped' | null;

export async function prove(options: DeliveryOptions) {
  const result = await deliverWindows(options, null);
  for (const offence of result.offences) options.report(offence);
  let caught = 0;
  for (const plant of ['tombstones_alone', 'applied_twice', 'gap_skipped'] as const) {
    const { offences } = await deliverWindows({ ...options, n: 6, report: () => {} }, plant);
    options.report(`planted ${plant}: ${offences[0] ?? 'NOT NOTICED'}`);
    if (offences.length > 0) caught += 1;
  }
  return {
    claim: `uploads in any order, ${result.duplicates} duplicates after up to 89 days: every total is the truth, every duplicate is known`,
    tried: options.n,
    failures: result.offences.length,
    plantedBugsCaught: `${caught} of 3`,
  };
}

export interface DeliveryResult {
  duplicates: number;
  offences: string[];
}

interface Window {
  sensor: MonitorWorld['sensor'];
  uploads: TelemetryUpload[];
}

/** Delivers `n` windows to one monitor and compares the facts of each with what it held. */
export async function deliverWindows(
  { n, seed, report }: DeliveryOptions,
  plant: Plant,
): Promise<DeliveryResult> {
  await using world = await createMonitorWorld();
  const random = seededRandom(seed);
  const result: DeliveryResult = { duplicates: 0, offences: [] };
  const windows: Window[] = [];
  for (let i = 0; i < n; i += 1) {
    const window = { sensor: await world.enrol(`host-${i}`), uploads: makeUploads(i) };
    windows.push(window);
    await deliverShuffled(world, window, random, result, plant);
    if (i % 20 === 19) await world.inbox.drain();
    if (i % 200 === 199) report(`${i + 1} windows, ${result.duplicates} duplicates`);
  }
  await world.inbox.drain();
  await deliverLate(world, windows, random, result, plant);
  await world.inbox.drain();
  result.offences.push(...(await compare(world, windows)));
  return result;
}

/** One minute of each upload, with bytes of its own; the last two speak of one window, and add. */
function makeUploads(index: number): TelemetryUpload[] {
  const spool = createSpool();
  return Array.from({ length: uploadsOfWindow }, (_, i) => {
    const minute = testMinute + Math.min(i, uploadsOfWindow - 2) * 60;
    const bytes = 1000 * (index + 1) + i;
    return spool.upload([captureMinute({ minute, observedMs: 30_000, hosts: [host(address, bytes, i)] })]);
  });
}

async function deliverShuffled(
  world: MonitorWorld,
  { sensor, uploads }: Window,
  random: () => number,
  result: DeliveryResult,
  plant: Plant,
): Promise<void> {
  const order = shuffle(uploads, random);
  const sent = new Set<TelemetryUpload>();
  // Planted: the highest number is taken for the last that is missing.
  const skipped =
    plant === 'gap_skipped'
      ? order.find((one, i) => order.slice(0, i).some((before) => before.sequence > one.sequence))
      : null;
  for (const upload of order) {
    if (upload === skipped) continue;
    await world.send(upload, sensor);
    sent.add(upload);
    if (random() < 0.4) {
      const again = [...sent][Math.floor(random() * sent.size)]!;
      result.duplicates += 1;
      if (plant === 'applied_twice') await sendAnew(world, again, sensor);
      else if ((await world.send(again, sensor)) !== 'duplicate')
        result.offences.push(`upload ${again.sequence} came twice and was accepted`);
    }
  }
}

async function deliverLate(
  world: MonitorWorld,
  windows: readonly Window[],
  random: () => number,
  result: DeliveryResult,
  plant: Plant,
): Promise<void> {
  for (const [i, late] of lateness.entries()) {
    // The clock of the database moves to the time after the start, not by it.
    await moveDatabaseClock(world.database, late);
    if (plant === 'tombstones_alone') await world.rows('update inbox_spools set covered_through = 0');
    await world.inbox.prune();
    if (plant === 'tombstones_alone')
      await world.rows(
        "delete from inbox_uploads where finished_at < svc_now() - interval '2 days'; update inbox_spools set covered_through = 0",
      );
    for (const { sensor, uploads } of windows) {
      const again = uploads[Math.floor(random() * uploads.length)]!;
      result.duplicates += 1;
      const receipt = await world.send(again, sensor).catch((error: Error) => error.message);
      if (receipt !== 'duplicate')
        result.offences.push(`a duplicate after ${lateness[i]} was answered with ${receipt}`);
    }
  }
}

/** The same content under an identity of its own, as a sensor would that numbers anew. */
async function sendAnew(
  world: MonitorWorld,
  upload: TelemetryUpload,
  sensor: MonitorWorld['sensor'],
): Promise<void> {
  await world.send({ ...createSpool().upload([]), minutes: upload.minutes }, sensor);
}

async function compare(world: MonitorWorld, windows: readonly Window[]): Promise<string[]> {
  const rows = await world.rows<{
    sensor: number;
    minutes: number;
    rx: number;
    tx: number;
    observed: number;
  }>(
    `select c.sensor_id::int as sensor, count(*)::int as minutes, sum(h.rx_bytes)::float8 as rx, sum(h.tx_bytes)::float8 as tx,
       sum(m.observed_ms)::float8 as observed
     from (select capture_id, minute, sum(rx_bytes) as rx_bytes, sum(tx_bytes) as tx_bytes from host_minutes
       where address = $1 group by capture_id, minute) h
     join captures c on c.id = h.capture_id
     join capture_minutes m on m.capture_id = h.capture_id and m.minute = h.minute
     group by c.sensor_id`,
    [address],
  );
  const found = new Map(rows.map((row) => [row.sensor, row]));
  return windows.flatMap(({ sensor, uploads }, i) => {
    const row = found.get(sensor.id);
    const hosts = uploads.flatMap((upload) => upload.minutes.flatMap((minute) => minute.hosts));
    const truth = {
      minutes: uploadsOfWindow - 1,
      rx: hosts.reduce((sum, one) => sum + one.rxBytes, 0),
      tx: hosts.reduce((sum, one) => sum + one.txBytes, 0),
      observed: uploadsOfWindow * 30_000,
    };
    const isEqual =
      row &&
      row.minutes === truth.minutes &&
      row.rx === truth.rx &&
      row.tx === truth.tx &&
      row.observed === truth.observed;
    return isEqual ? [] : [`window ${i}: ${JSON.stringify(row ?? null)} instead of ${JSON.stringify(truth)}`];
  });
}

function shuffle<T>(items: readonly T[], random: () => number): T[] {
  const left = [...items];
  return items.map(() => left.splice(Math.floor(random() * left.length), 1)[0]!);
}
