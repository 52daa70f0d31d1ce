import type { AccountUsage } from '#operations/metering/index.ts';
import type { DaySpending } from '#operations/views/tenant-store.ts';
import {
  type Column,
  cellColumn,
  chart,
  code,
  codeColumn,
  formatCount,
  formatTime,
  type Html,
  shareBar,
  type TableOptions,
  table,
} from '#service-kit/pages/index.ts';

/** What was charged each day. */
export function spendingChart(days: readonly DaySpending[], title: string): Html {
  const isQuiet = days.every((day) => day.serverQuanta + day.otherQuanta === 0);
  return chart({
    id: 'spending',
    title,
    unit: 'money',
    size: 'small',
    source: 'ledger, days in UTC',
    emptyText: 'Nothing was charged in the last 30 days.',
    data: {
      timesMs: days.map((day) => day.day.getTime()),
      stepMs: 86_400_000,
      shape: 'bars',
      series: isQuiet
        ? []
        : [
            { label: 'Servers', values: days.map((day) => day.serverQuanta) },
            { label: 'Everything else', values: days.map((day) => day.otherQuanta) },
          ],
    },
  });
}

/** A month's requests by day. */
export function requestsByDayChart(
  { days, asOf, startsAt, endsAt }: Pick<AccountUsage, 'days' | 'startsAt' | 'endsAt' | 'asOf'>,
  title: string,
  csvHref?: string,
): Html {
  const isEmpty = days.every((day) => day.count === 0);
  return chart({
    id: 'requests-by-day',
    title,
    unit: 'count',
    source: `UTC days, counted up to ${formatTime(asOf.getTime())}`,
    data: {
      timesMs: days.map((day) => Date.parse(day.date)),
      stepMs: 86_400_000,
      range: { fromMs: startsAt.getTime(), toMs: endsAt.getTime() },
      shape: 'bars',
      // Nothing but zeros says less than the sentence.
      series: [{ label: 'Requests', values: days.map((day) => (isEmpty ? null : day.count)) }],
    },
    csvHref,
    emptyText: 'No request was counted in this month.',
  });
}

/** Which part of all requests a row has. */
export const requestShareColumn = (total: number): Column<{ count: number }> => ({
  ...{ key: 'share', header: 'Share', kind: 'figure' },
  cell: ({ count }) => shareBar(count / Math.max(1, total)),
});

type KeyUsage = AccountUsage['keys'][number];

/** A month's requests by key. */
export function requestsByKeyTable(
  usage: Pick<AccountUsage, 'keys' | 'count'>,
  options: Pick<TableOptions<KeyUsage>, 'empty' | 'url'>,
): Html {
  return table<KeyUsage>({
    ...options,
    caption: 'Requests by key',
    card: { line: ['count', 'share'] },
    columns: [
      cellColumn('name', 'Name', (key) => key.name),
      codeColumn('id', 'Key', (key) => (key.keyId ? code(`svc_${key.keyId}_…`) : '—')),
      { key: 'count', header: 'Requests', kind: 'figure', cell: (key) => formatCount(key.count) },
      requestShareColumn(usage.count),
    ],
    rows: usage.keys,
  });
}
