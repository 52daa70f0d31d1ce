/** Results of probes. The monitor counts each once. A minute without results is unknown, so their loss needs no gap. */
import type { RecordKind } from '#sensor/spool/index.ts';

export const probeRecords: RecordKind<'probes'> = {
  name: 'probes',
  priority: 'bulk',
  goesAlone: true,
  count: ({ probes }) => probes?.length ?? 0,
  lostAs: () => [],
  restamp: ({ probes }, { seconds }) =>
    probes ? { probes: probes.map((one) => ({ ...one, minute: one.minute + seconds })) } : {},
};
