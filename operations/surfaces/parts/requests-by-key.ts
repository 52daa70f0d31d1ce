import type { AccountUsage } from '#operations/metering/index.ts';
import {
  code,
  formatCount,
  type Html,
  shareBar,
  type TableOptions,
  table,
} from '#service-kit/pages/index.ts';

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
      { key: 'name', header: 'Name', cell: (key) => key.name },
      {
        key: 'id',
        header: 'Key',
        kind: 'code',
        cell: (key) => (key.keyId ? code(`svc_${key.keyId}_…`) : '—'),
      },
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
