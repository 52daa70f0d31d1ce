/**
 * Proof of the intake's bounds: hostile uploads of every kind, in both compressions and on both wires, from many sensors at
 * once, and an honest sensor beside them.
 *
 * No slice may do more than its rows and bytes, no upload that is taken may be over 64 MiB, every hostile one is refused by
 * name, and the honest sensor's upload of the same moment is read as it was sent.
 */
import { isDeepStrictEqual } from 'node:util';
import { createTestClock } from '#common/clock/index.ts';
import {
  decodedBytesMax,
  decodeMessage,
  runInSlices,
  type SliceWork,
  sliceBytesMax,
  sliceRowsMax,
} from '#contracts/sensor-api/decode-slices.ts';
import { createSetAside } from '#contracts/sensor-api/set-aside.ts';
import { uploadBounds } from '#contracts/sensor-api/telemetry-bounds.ts';
import {
  compressUpload,
  decompressUpload,
  encodeUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import type { MessageBounds } from '#contracts/sensor-api/wire-bounds.ts';
import { captureMinute, createSpool, host, usageRow } from '#monitor/testing/index.ts';
import { createIntake, type Intake } from './index.ts';
import { type HostileUpload, makeHostileUpload, type Random } from './testing/hostile-uploads.ts';

export const name = 'intake-bounds';

const sensorsAtOnce = 8;
const honestSensor = 1000;

export interface BoundsOptions {
  /** Hostile uploads. */
  n: number;
  seed: number;
  report(line: string): void;
}

type Plant = 'unsliced' | 'uncounted' | 'taken_whole' | 'one_lost' | null;

export async function prove(options: BoundsOptions) {
  const { offences, slices, most } = await sendHostile(options, null);
  for (const offence of offences.slice(0, 20)) options.report(offence);
  let caught = 0;
  const plants = ['unsliced', 'uncounted', 'taken_whole', 'one_lost'] as const;
  for (const plant of plants) {
    const planted = await sendHostile({ ...options, n: 400, report: () => {} }, plant);
    options.report(`planted ${plant}: ${planted.offences[0] ?? 'NOT NOTICED'}`);
    if (planted.offences.length > 0) caught += 1;
  }
  return {
    claim: `hostile uploads: all refused, ${slices} slices of at most ${most.rows} rows and ${most.bytes} bytes, the honest sensor beside them is read`,
    tried: options.n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

interface Outcome {
  offences: string[];
  slices: number;
  most: SliceWork;
}

async function sendHostile({ n, seed, report }: BoundsOptions, plant: Plant): Promise<Outcome> {
  const random = seededRandom(seed);
  const outcome: Outcome = { offences: [], slices: 0, most: { rows: 0, bytes: 0 } };
  const onSlice = (work: SliceWork) => noteSlice(outcome, work);
  const intake = plantedIntake(createIntake({ clock: createTestClock(0), onSlice }), onSlice, plant);
  const spool = createSpool();
  for (let i = 0; i < n; i += sensorsAtOnce) {
    const hostile = Array.from({ length: Math.min(sensorsAtOnce, n - i) }, () =>
      makeHostileUpload(random, plant ? 10 : 500),
    );
    const honest = honestUpload(spool, random);
    const sent = plant === 'one_lost' && i === 0 ? { ...honest, minutes: honest.minutes.slice(1) } : honest;
    await Promise.all([
      ...hostile.map((upload, sensorId) => expectRefusal(intake, sensorId, upload, outcome)),
      expectRead(intake, sent, honest, outcome),
    ]);
    if ((i / sensorsAtOnce) % 500 === 499) report(`${i + sensorsAtOnce} uploads, ${outcome.slices} slices`);
  }
  return outcome;
}

function noteSlice(outcome: Outcome, { rows, bytes }: SliceWork): void {
  outcome.slices += 1;
  outcome.most = { rows: Math.max(outcome.most.rows, rows), bytes: Math.max(outcome.most.bytes, bytes) };
  if (rows > sliceRowsMax || bytes > sliceBytesMax)
    outcome.offences.push(`a slice of ${rows} rows and ${bytes} bytes`);
}

async function expectRefusal(
  intake: Intake,
  sensorId: number,
  { kind, wire, body, encoding }: HostileUpload,
  { offences }: Outcome,
): Promise<void> {
  try {
    if (wire === 'live') await intake.readLive(sensorId, body, encoding);
    else {
      const { decodedBytes } = await intake.readUpload(sensorId, body, encoding);
      if (decodedBytes > decodedBytesMax) offences.push(`${kind}: taken with ${decodedBytes} bytes decoded`);
    }
    offences.push(`${kind}: ${body.length} bytes of ${encoding} were taken`);
  } catch (error) {
    const { code } = error as { code?: string };
    if (code !== 'telemetry.malformed' && code !== 'telemetry.too_large')
      offences.push(`${kind}: ${String(error)}`);
  }
}

async function expectRead(
  intake: Intake,
  sent: TelemetryUpload,
  meant: TelemetryUpload,
  { offences }: Outcome,
): Promise<void> {
  try {
    const { upload } = await intake.readUpload(honestSensor, compressUpload(encodeUpload(sent)), 'zstd');
    if (!isDeepStrictEqual(upload, meant))
      offences.push(`honest upload ${sent.sequence} is not what was sent`);
  } catch (error) {
    offences.push(`honest upload ${sent.sequence}: ${String(error)}`);
  }
}

/** A minute of a hypervisor with 20 addresses; one in a hundred is that of a busy one. */
function honestUpload(spool: ReturnType<typeof createSpool>, random: Random): TelemetryUpload {
  const rows = random() < 0.01 ? 4096 : 100;
  const hosts = Array.from({ length: 20 }, (_, i) => host(`192.0.2.${i}`, i * 1000, i));
  const usage = Array.from({ length: rows }, (_, i) => usageRow({ name: `h${i}.example`, clientBytes: i }));
  return spool.upload([
    captureMinute({ hosts, usage }),
    captureMinute({ capture: 'br0', role: 'bridge', hosts, usage }),
  ]);
}

/** An intake with a fault of which the judge must notice. */
function plantedIntake(intake: Intake, onSlice: (work: SliceWork) => void, plant: Plant): Intake {
  if (plant === null || plant === 'one_lost') return intake;
  const bounds = plant === 'uncounted' ? withoutLimits() : uploadBounds;
  return {
    ...intake,
    async readUpload(sensorId, body, encoding) {
      // Planted: what is refused is taken.
      if (plant === 'taken_whole') {
        const digest = Buffer.alloc(32);
        return intake.readUpload(sensorId, body, encoding).catch((error: unknown) => {
          if (sensorId === honestSensor) throw error;
          return {
            upload: createSpool().upload([]),
            setAside: createSetAside(),
            digest,
            decodedBytes: decodedBytesMax + 1,
          };
        });
      }
      const bytes = decompressUpload(body, encoding);
      const whole = { rows: 0, bytes: 0 };
      const add = (work: SliceWork) => {
        whole.rows += work.rows;
        whole.bytes += work.bytes;
      };
      const run = { pause: async () => {}, onSlice: plant === 'unsliced' ? add : onSlice };
      try {
        await runInSlices((slice) => decodeMessage(bounds as typeof uploadBounds, bytes, slice), run);
      } finally {
        if (plant === 'unsliced') onSlice(whole);
      }
      return intake.readUpload(sensorId, body, encoding).catch((error: unknown) => {
        if (plant === 'unsliced' || sensorId === honestSensor) throw error;
        // Planted: nothing was counted, so what could be decoded was taken.
        return {
          upload: createSpool().upload([]),
          setAside: createSetAside(),
          digest: Buffer.alloc(32),
          decodedBytes: 0,
        };
      });
    },
  };
}

function withoutLimits(): MessageBounds {
  const unbounded = (bounds: MessageBounds): MessageBounds => ({
    ...bounds,
    fields: bounds.fields.map(
      (field) => field && { ...field, max: 2 ** 30, message: field.message && unbounded(field.message) },
    ),
  });
  return unbounded(uploadBounds);
}

function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
