/** What must be said beside a list of applications: what is missing, and how much can be told apart (NET-2.2.6). */
import type { ApplicationUse, CollectionNotices } from '#monitor/applications/index.ts';
import { formatBytes, formatCount, formatPercent, notice, stat, stats } from '#service-kit/pages/index.ts';

/** Gaps that are counted one by one. */
export const gapsMax = 100;

export function collectionState(notices: CollectionNotices, gaps: number) {
  if (notices.packetCoverage === null)
    return { tone: 'neutral', text: 'Nothing was collected in this range.' } as const;
  if (notices.isPartial)
    return { tone: 'warn', text: 'Partial: packets were lost before they could be named.' } as const;
  if (gaps > 0) {
    const count = gaps >= gapsMax ? `${gapsMax} or more` : formatCount(gaps);
    return { tone: 'warn', text: `Partial: ${count} ${gaps === 1 ? 'gap' : 'gaps'} in this range.` } as const;
  }
  return { tone: 'good', text: 'Every packet that reached a capture was counted.' } as const;
}

/** What is known to be missing (NET-2.2.6). */
export function collectionNotices(notices: CollectionNotices) {
  return [
    notices.parserDropped > 0 &&
      notice({
        tone: 'warn',
        title: `${formatCount(notices.parserDropped)} packets could not be parsed`,
        text: 'This window is partial. Their bytes are in no row below and are not estimated.',
      }),
    notices.kernelDropped > 0 &&
      notice({
        tone: 'warn',
        title: `${formatCount(notices.kernelDropped)} packets were dropped before the sensor saw them`,
        text: 'Their bytes are in no row below and are not estimated.',
      }),
    notices.detailTruncated > 0 &&
      notice({
        tone: 'info',
        title: `${formatCount(notices.detailTruncated)} details were left out`,
        text: 'More flows, names or addresses came at once than a sensor keeps. Totals of addresses stay exact.',
      }),
  ];
}

/** How much of it can be told apart (NET-2.2.6); a ratio of nothing is unknown. */
export function attributionStats(use: ApplicationUse, notices: CollectionNotices) {
  const share = (ratio: number | null) => (ratio === null ? undefined : formatPercent(ratio));
  return stats(
    stat({
      label: 'Packets seen',
      value: share(notices.packetCoverage),
      source: `of ${formatCount(notices.packets + notices.kernelDropped)} at the captures`,
      tone: notices.kernelDropped > 0 ? 'warn' : undefined,
    }),
    stat({ label: 'Named by evidence', value: share(notices.domainRatio), source: 'of the bytes below' }),
    stat({ label: 'Named by port', value: share(notices.portRatio), source: 'of the bytes below' }),
    stat({
      label: 'With a known device',
      value: share(notices.deviceRatio),
      source: 'of the bytes of local addresses',
    }),
    stat({
      label: 'All bytes',
      value: use.total === 0 ? undefined : formatBytes(use.bytes),
      source: `${formatCount(use.total)} applications and services`,
    }),
  );
}
