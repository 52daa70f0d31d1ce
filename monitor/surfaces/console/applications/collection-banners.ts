/** Banners and figures beside a list of applications: losses, gaps and attribution (NET-2.2.6). */
import type { CollectionNotices } from '#monitor/applications/index.ts';
import type { ApplicationUse } from '#monitor/facts/index.ts';
import { banner, formatBytes, formatCount, formatPercent, stat, stats } from '#service-kit/pages/index.ts';

/** Above this number gaps are not counted. */
export const gapsMax = 100;

export function collectionState(notices: CollectionNotices, gaps: number) {
  if (notices.packetCoverage === null)
    return { tone: 'neutral', text: 'No data was collected in this range.' } as const;
  if (notices.isPartial)
    return { tone: 'warn', text: 'Partial: packets were lost before they could be classified.' } as const;
  if (gaps > 0) {
    const count = gaps >= gapsMax ? `${gapsMax} or more` : formatCount(gaps);
    return { tone: 'warn', text: `Partial: ${count} ${gaps === 1 ? 'gap' : 'gaps'} in this range.` } as const;
  }
  return { tone: 'good', text: 'Every packet that reached a capture was counted.' } as const;
}

/** Banners about losses (NET-2.2.6). */
export function collectionBanners(notices: CollectionNotices) {
  return [
    notices.parserDropped > 0 &&
      banner({
        tone: 'warn',
        title: `${formatCount(notices.parserDropped)} packets could not be parsed`,
        text: 'This range is partial. Their bytes are missing below and are not estimated.',
      }),
    notices.kernelDropped > 0 &&
      banner({
        tone: 'warn',
        title: `${formatCount(notices.kernelDropped)} packets were dropped before the sensor saw them`,
        text: 'Their bytes are missing below and are not estimated.',
      }),
    notices.detailTruncated > 0 &&
      banner({
        tone: 'info',
        title: `${formatCount(notices.detailTruncated)} details were dropped`,
        text: 'There were more flows, names or addresses than a sensor can hold. Totals of addresses stay exact.',
      }),
  ];
}

/** Ratios of attribution (NET-2.2.6); null without bytes. */
export function attributionStats(use: ApplicationUse, notices: CollectionNotices) {
  const share = (ratio: number | null) => (ratio === null ? undefined : formatPercent(ratio));
  return stats(
    stat({
      label: 'Packets seen',
      value: share(notices.packetCoverage),
      source: `of ${formatCount(notices.packets + notices.kernelDropped)} at the captures`,
      tone: notices.kernelDropped > 0 ? 'warn' : undefined,
    }),
    stat({ label: 'Named by evidence', value: share(notices.domainRatio), source: 'of these bytes' }),
    stat({ label: 'Named by port', value: share(notices.portRatio), source: 'of these bytes' }),
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
