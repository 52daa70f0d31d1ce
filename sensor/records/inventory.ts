/** What the host's network consists of. It is told again with the next minute, so its loss means nothing. */
import type { RecordKind } from '#sensor/spool/index.ts';

export const inventoryRecords: RecordKind<'inventory'> = {
  name: 'inventory',
  priority: 'bulk',
  goesAlone: false,
  count: ({ inventory }) => (inventory ? 1 : 0),
  lostAs: () => [],
  restamp({ inventory }, { seconds }, nowMs) {
    if (!inventory) return {};
    return {
      inventory: { ...inventory, observedAtMs: Math.min(inventory.observedAtMs + seconds * 1000, nowMs) },
    };
  },
};
