/** Items that feeds can not deliver, on the page `/operations`. */
import type { FastifyRequest } from 'fastify';
import type { Feed, HeldBack } from '#monitor/feeds/index.ts';
import { age, type Content, code, formatCount, isoTime, moment } from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';

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
      {
        key: 'item',
        header: 'Address or record',
        kind: 'code',
        cell: (row) => code(row.item),
        value: (row) => row.item,
      },
      {
        key: 'feed',
        header: 'Feed',
        cell: (row) => titles.get(row.feed) ?? row.feed,
        value: (row) => row.feed,
      },
      {
        key: 'visit',
        header: 'Last visit',
        kind: 'figure',
        cell: (row) => age(row.visitedAtMs, nowMs),
        field: 'last_visit',
        value: (row) => isoTime(row.visitedAtMs),
      },
      {
        key: 'outcome',
        header: 'Outcome',
        kind: 'prose',
        cell: (row) => outcomes[row.outcome] ?? 'Delivered, except for items that are set aside.',
        value: (row) => row.outcome,
      },
      {
        key: 'aside',
        header: 'Set aside',
        kind: 'figure',
        cell: (row) => (row.setAside === 0 ? '' : formatCount(row.setAside)),
        field: 'set_aside',
        value: (row) => row.setAside,
      },
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
