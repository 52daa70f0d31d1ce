/** Faults of an intake that the proof `intake-bounds` must detect. */
import {
  decodedBytesMax,
  decodeMessage,
  runInSlices,
  type SliceWork,
} from '#contracts/sensor-api/decode-slices.ts';
import { createSetAside } from '#contracts/sensor-api/set-aside.ts';
import { uploadBounds } from '#contracts/sensor-api/telemetry-bounds.ts';
import { decompressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import type { MessageBounds } from '#contracts/sensor-api/wire-bounds.ts';
import type { Intake, ReadUpload } from '#monitor/intake/index.ts';
import { createSpool } from '#monitor/testing/index.ts';

/**
 * `unsliced`: an upload is decoded in one slice. `uncounted`: the limits of its fields are not checked. `taken_whole`:
 * refused uploads are accepted. `one_lost`: the honest sensor's first upload loses a minute in transit, which is not a
 * fault of the intake.
 */
export const plants = ['unsliced', 'uncounted', 'taken_whole', 'one_lost'] as const;
export type Plant = (typeof plants)[number];

export interface PlantOptions {
  plant: Plant | null;
  onSlice(work: SliceWork): void;
  /** The sensor whose uploads are read without a fault. */
  isHonest(sensorId: number): boolean;
}

/** The intake with the planted fault. */
export function plantFault(intake: Intake, { plant, onSlice, isHonest }: PlantOptions): Intake {
  if (plant === null || plant === 'one_lost') return intake;
  const bounds = plant === 'uncounted' ? withoutLimits() : uploadBounds;
  const takeInstead = (decodedBytes: number): ReadUpload => ({
    upload: createSpool().upload([]),
    setAside: createSetAside(),
    digest: Buffer.alloc(32),
    decodedBytes,
  });
  return {
    ...intake,
    async readUpload(sensorId, body, encoding) {
      const read = () => intake.readUpload(sensorId, body, encoding);
      if (isHonest(sensorId)) return read();
      if (plant === 'taken_whole') return read().catch(() => takeInstead(decodedBytesMax + 1));
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
      return plant === 'unsliced' ? read() : read().catch(() => takeInstead(0));
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
