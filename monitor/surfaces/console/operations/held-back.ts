/** Items that feeds can not deliver, on the page `/operations`. */
import type { FastifyRequest } from 'fastify';
import type { Feed, HeldBack } from '#monitor/feeds/index.ts';
import { type Content, code, formatCount, isoTime, moment } from '#service-kit/pages/index.ts';
import { ageColumn, dataTable, figureColumn, textColumn } from '#service-kit/web/index.ts';

const outcomes: Readonly<Record<string, string>> = {
  source_conflict:
    'Another source delivers this address. This monitor takes over 15 minutes after that source stops, or at once with “Hand over” on the project’s page in operations.',
  unmatched: 'Operations has no such allocation. The targets are read again.',
  refused: 'Operations refused the request. The refused items are set aside, and the rest is sent.',
};
const reasons: Readonly<Record<string, string>> = {
  rate_implausible: 'a rate above 400 Gbit/s',
  bytes_implausible: 'an application above 400 Gbit/s',
  refused: 'refused by operations',
};

/** Empty when everything is delivered. */
export function heldBackTable(
  request: FastifyRequest,
  rows: readonly HeldBack[],
  feeds: readonly Feed[],
  nowMs: number,
): Content {
  if (rows.length === 0) return false;
  const titles = new Map(feeds.map(({ name, title }) => [name, title]));
  return dataTable<HeldBack>(request, {
    id: 'held-back',
    caption: 'Not delivered in full',
    card: { line: ['feed', 'outcome', 'newest'] },
    rows,
    empty: { title: 'None', text: 'All items are delivered.' },
    columns: [
      textColumn('item', 'Address or record', (row) => row.item, { kind: 'code', show: code }),
      textColumn('feed', 'Feed', (row) => row.feed, { show: (feed) => titles.get(feed) ?? feed }),
      ageColumn('visit', 'Last visit', (row) => row.visitedAtMs, nowMs, { field: 'last_visit' }),
      textColumn('outcome', 'Outcome', (row) => row.outcome, {
        kind: 'prose',
        show: (outcome) => outcomes[outcome] ?? 'Delivered, except for items that are set aside.',
      }),
      figureColumn(
        'aside',
        'Set aside',
        (row) => row.setAside,
        (setAside) => (setAside === 0 ? '' : formatCount(setAside)),
        { field: 'set_aside' },
      ),
      {
        key: 'newest',
        header: 'Newest of them',
        cell: (row) =>
          row.newestSetAside === null
            ? ''
            : [moment(row.newestSetAside * 1000, nowMs), ': ', reasons[row.reason ?? ''] ?? row.reason ?? ''],
        field: 'newest_set_aside',
        value: (row) => isoTime(row.newestSetAside === null ? null : row.newestSetAside * 1000),
      },
    ],
  });
}
