import type { AccountUsage } from '#operations/metering/index.ts';
import type { DaySpending } from '#operations/views/tenant-store.ts';
import {
  cellColumn,
  chart,
  code,
  codeColumn,
  formatCount,
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
      {
        key: 'share',
        header: 'Share',
        kind: 'figure',
        cell: (key) => shareBar(key.count / Math.max(1, usage.count)),
      },
    ],
    rows: usage.keys,
  });
}
