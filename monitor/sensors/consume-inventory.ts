import type { UploadConsumer } from '#monitor/intake/index.ts';
import { type SensorInventory, upsertInventories } from './inventory-store.ts';

/** Takes `inventory`. What a clock that is ahead observed counts as observed now, or nothing could replace it for long. */
export function createInventoryConsumer(): UploadConsumer<SensorInventory> {
  return {
    kind: 'inventory',
    select({ sensorId, nowMs, upload: { inventory } }) {
      if (!inventory) return null;
      const observedAtMs = Math.min(inventory.observedAtMs, nowMs);
      return { sensorId, inventory: { ...inventory, observedAtMs } };
    },
    apply: upsertInventories,
  };
}
