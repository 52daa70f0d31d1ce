/** What the detector protects, since when. Minutes without their epoch are unknown, so its loss needs no gap. */
import type { RecordKind } from '#sensor/spool/index.ts';

export const epochRecords: RecordKind<'epochs'> = {
  name: 'epochs',
  priority: 'bulk',
  goesAlone: false,
  count: ({ epochs }) => epochs?.length ?? 0,
  lostAs: () => [],
  restamp: ({ epochs }, { seconds }) =>
    epochs ? { epochs: epochs.map((one) => ({ ...one, sinceMs: one.sinceMs + seconds * 1000 })) } : {},
};
