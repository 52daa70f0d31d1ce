/**
 * Proof of the intake's limits: hostile uploads of every kind, with both compressions and on both wires, each
 * different, sent over HTTP by eight sensors concurrently, beside an honest sensor.
 *
 * No slice exceeds its rows and bytes, no accepted upload exceeds 64 MiB, every hostile one is refused with its error
 * and leaves no data, and the honest sensor's upload is read unchanged and stored.
 */

import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { createTestClock } from '#common/clock/index.ts';
import { seededRandom } from '#common/random/index.ts';
import {
  decodedBytesMax,
  type SliceWork,
  sliceBytesMax,
  sliceRowsMax,
} from '#contracts/sensor-api/decode-slices.ts';
import { compressUpload, encodeUpload, type TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { createIntake, type Intake } from '#monitor/intake/index.ts';
import {
  type HostileUpload,
  makeHostileUpload,
  type Random,
} from '#monitor/intake/testing/hostile-uploads.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import { type IntakeServer, startIntakeServer } from './intake-server.ts';
import { type Plant, plantFault, plants } from './planted-intake.ts';

export const name = 'intake-bounds';
export const plantedFaults = plants;

const sensorsAtOnce = 8;
/** Time between two rounds, long enough that the intake delays no sensor. */
const roundMs = 3_000;
/** Uploads of a run with a planted fault, which ends at the first offence. */
const plantedUploads = 400;
const refusals: ReadonlySet<string> = new Set(['400 telemetry_malformed', '413 telemetry_too_large']);

export interface BoundsOptions {
  /** Number of hostile uploads. */
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove(options: BoundsOptions) {
  const { offences, slices, most, honest } = await sendHostile(options, null);
  for (const offence of offences.slice(0, 20)) options.report(offence);
  let caught = 0;
  for (const plant of plants) {
    const planted = await sendHostile({ ...options, n: plantedUploads, report: () => {} }, plant);
    options.report(`planted ${plant}: ${planted.offences[0] ?? 'NOT NOTICED'}`);
    if (planted.offences.length > 0) caught += 1;
  }
  return {
    claim: `different hostile uploads over HTTP: all refused by name, ${slices} slices of at most ${most.rows} rows and ${most.bytes} bytes; ${honest} uploads of the honest sensor beside them are read and stored`,
    tried: options.n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

interface Outcome {
  offences: string[];
  slices: number;
  most: SliceWork;
  /** Number of uploads of the honest sensor. */
  honest: number;
}

/** One run: its server and its offences. */
interface Run extends Outcome {
  server: IntakeServer;
  /** The decoded uploads of the honest sensor, by sequence. */
  read: Map<number, TelemetryUpload>;
}

async function sendHostile({ n, seed, report }: BoundsOptions, plant: Plant | null): Promise<Outcome> {
  const random = seededRandom(seed);
  const outcome: Outcome = { offences: [], slices: 0, most: { rows: 0, bytes: 0 }, honest: 0 };
  const read: Run['read'] = new Map();
  const clock = createTestClock(0);
  let honestId = -1;
  const onSlice = (work: SliceWork) => noteSlice(outcome, work);
  const isHonest = (sensorId: number) => sensorId === honestId;
  const real = createIntake({ clock, onSlice });
  const intake = watchTaken(plantFault(real, { plant, onSlice, isHonest }), (sensorId, taken) => {
    if (isHonest(sensorId)) read.set(taken.upload.sequence, taken.upload);
    else if (taken.decodedBytes > decodedBytesMax)
      outcome.offences.push(`an upload of ${taken.decodedBytes} bytes decoded was taken`);
  });
  await using server = await startIntakeServer(intake);
  const run: Run = Object.assign(outcome, { server, read });
  const hosts = await Promise.all(
    Array.from({ length: sensorsAtOnce + 1 }, (_, i) => server.enrol(`host-${i}`)),
  );
  const [honestHost, ...hostileHosts] = hosts;
  honestId = honestHost!.id;
  const spool = createSpool();
  const digests: Buffer[] = [];
  const different = createDifferent(random, plant ? 10 : 100);
  for (let i = 0; i < n && (plant === null || run.offences.length === 0); i += sensorsAtOnce) {
    const hostile = Array.from({ length: Math.min(sensorsAtOnce, n - i) }, different);
    const meant = honestUpload(spool, random);
    const isCut = plant === 'one_lost' && i === 0;
    const bytes = encodeUpload(isCut ? { ...meant, minutes: meant.minutes.slice(1) } : meant);
    digests.push(createHash('sha256').update(bytes).digest());
    await Promise.all([
      ...hostile.map((upload, k) => expectRefusal(run, hostileHosts[k]!.credential, upload)),
      expectRead(run, honestHost!.credential, bytes, meant),
    ]);
    await clock.advance(roundMs);
    if ((i / sensorsAtOnce) % 250 === 249)
      report(`${i + sensorsAtOnce} uploads, ${run.slices} slices, ${run.offences.length} offences`);
  }
  await expectStored(run, honestId, digests);
  return outcome;
}

function noteSlice(outcome: Outcome, { rows, bytes }: SliceWork): void {
  outcome.slices += 1;
  outcome.most = { rows: Math.max(outcome.most.rows, rows), bytes: Math.max(outcome.most.bytes, bytes) };
  if (rows > sliceRowsMax || bytes > sliceBytesMax)
    outcome.offences.push(`a slice of ${rows} rows and ${bytes} bytes`);
}

/** The intake with a check of each accepted upload. */
function watchTaken(
  intake: Intake,
  onTaken: (sensorId: number, taken: Awaited<ReturnType<Intake['readUpload']>>) => void,
): Intake {
  return {
    ...intake,
    async readUpload(sensorId, body, encoding) {
      const taken = await intake.readUpload(sensorId, body, encoding);
      onTaken(sensorId, taken);
      return taken;
    },
  };
}

/** Creates distinct hostile uploads. */
function createDifferent(random: Random, largeEvery: number): () => HostileUpload {
  const known = new Set<string>();
  return () => {
    for (;;) {
      const upload = makeHostileUpload(random, largeEvery);
      const key = `${upload.wire} ${createHash('sha1').update(upload.body).digest('base64')}`;
      if (known.has(key)) continue;
      known.add(key);
      return upload;
    }
  };
}

async function expectRefusal(
  { server, offences }: Run,
  credential: string,
  { kind, wire, body, encoding }: HostileUpload,
): Promise<void> {
  const { status, code } = await server.post(wire, credential, body, encoding);
  if (!refusals.has(`${status} ${code}`))
    offences.push(`${kind}: ${body.length} bytes of ${encoding} were answered with ${status} ${code ?? ''}`);
}

async function expectRead(
  run: Run,
  credential: string,
  bytes: Uint8Array,
  meant: TelemetryUpload,
): Promise<void> {
  const { sequence } = meant;
  const { status, code, receipt } = await run.server.post(
    'telemetry',
    credential,
    compressUpload(bytes),
    'zstd',
  );
  run.honest += 1;
  if (receipt !== 'accepted')
    run.offences.push(`honest upload ${sequence} was answered with ${status} ${code ?? receipt ?? ''}`);
  if (!isDeepStrictEqual(run.read.get(sequence), meant))
    run.offences.push(`honest upload ${sequence} is not what was sent`);
  run.read.delete(sequence);
}

/** The inbox contains the honest sensor's uploads and nothing else. */
async function expectStored(run: Run, honestId: number, digests: readonly Buffer[]): Promise<void> {
  const rows = await run.server.world.rows<{ sensor_id: string; sequence: string; digest: Buffer }>(
    'select sensor_id, sequence, digest from inbox_uploads order by sensor_id, sequence',
  );
  const foreign = rows.filter((row) => Number(row.sensor_id) !== honestId).length;
  if (foreign > 0) run.offences.push(`${foreign} uploads of hostile sensors are stored`);
  const stored = new Map(
    rows
      .filter((row) => Number(row.sensor_id) === honestId)
      .map((row) => [Number(row.sequence), row.digest.toString('hex')]),
  );
  for (const [i, digest] of digests.entries()) {
    if (stored.get(i + 1) !== digest.toString('hex'))
      run.offences.push(`honest upload ${i + 1} is not stored as it was sent`);
  }
  const windows = await run.server.world.rows('select 1 from live_windows limit 1');
  if (windows.length > 0) run.offences.push('live windows of hostile sensors are stored');
}

/** A minute of a hypervisor with 20 addresses; one in a hundred is a busy one. */
function honestUpload(spool: ReturnType<typeof createSpool>, random: Random): TelemetryUpload {
  const rows = random() < 0.01 ? 4096 : 100;
  const hosts = Array.from({ length: 20 }, (_, i) => host(`192.0.2.${i}`, i * 1000, i));
  const usage = Array.from({ length: rows }, (_, i) => usageRow({ name: `h${i}.example`, clientBytes: i }));
  return spool.upload([
    captureMinute({ hosts, usage }),
    captureMinute({ capture: 'br0', role: 'bridge', hosts, usage }),
  ]);
}
