/** The page of a site's events, newest first. */

import type { FastifyRequest } from 'fastify';
import { keptText } from '#contracts/retention.ts';
import type { MonitorEvent } from '#monitor/events/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import {
  type Content,
  field,
  form,
  html,
  isoTime,
  link,
  moment,
  pageHeader,
  withQuery,
} from '#service-kit/pages/index.ts';
import { dataTable, wantedFile } from '#service-kit/web/index.ts';
import { eventName } from '../parts/words.ts';
import { describeEvent } from './describe-event.ts';

/** The filter, as its form was filled in. */
interface Query {
  kind?: string;
  sensor?: string;
  from?: string;
  to?: string;
  /** Only events older than this one. */
  after?: number;
}

export interface EventsPage {
  siteId: number;
  query: Query;
  events: readonly MonitorEvent[];
  /** There are older ones. */
  hasMore: boolean;
  /** Of all the site's events. */
  kinds: readonly string[];
  sensors: readonly SensorState[];
  nowMs: number;
}

export function eventsPage(request: FastifyRequest, page: EventsPage): Content {
  const { siteId, query, events, hasMore, kinds, sensors, nowMs } = page;
  const filter = filterForm(siteId, query, kinds, sensors);
  return [
    pageHeader({ title: 'Events', state: stateOf(query, events, hasMore) }),
    eventTable(request, events, { nowMs, hasMore, filter }),
  ];
}

function stateOf(query: Query, events: readonly MonitorEvent[], hasMore: boolean) {
  const isNarrowed = Boolean(query.kind || query.sensor || query.from || query.to);
  if (events.length === 0) {
    return isNarrowed ? undefined : ({ tone: 'good', text: 'No events yet.' } as const);
  }
  if (query.after) return undefined;
  const count = hasMore ? `${events.length} newest` : String(events.length);
  const text = `${count} ${isNarrowed ? 'match' : 'stored'}; events are kept for ${keptText('events')}.`;
  return { tone: 'info', text } as const;
}

function filterForm(
  siteId: number,
  query: Query,
  kinds: readonly string[],
  sensors: readonly SensorState[],
): Content {
  if (kinds.length === 0) return false;
  const action = `/sites/${siteId}/events`;
  const isNarrowed = Boolean(query.kind || query.sensor || query.from || query.to);
  return form(
    {
      action,
      method: 'get',
      submit: 'Filter',
      submitKind: 'button',
      layout: 'inline',
      cancel: isNarrowed && link(action, 'All events'),
    },
    [
      field({
        kind: 'select',
        name: 'kind',
        label: 'Kind',
        value: query.kind ?? '',
        options: [
          { value: '', label: 'any' },
          ...kinds.map((kind) => ({ value: kind, label: eventName(kind) })),
        ],
      }),
      field({
        kind: 'select',
        name: 'sensor',
        label: 'Sensor',
        value: query.sensor ?? '',
        options: [
          { value: '', label: 'any' },
          ...sensors.map((sensor) => ({ value: String(sensor.id), label: sensor.hostName })),
        ],
      }),
      field({ kind: 'datetime-local', name: 'from', label: 'From (UTC)', value: query.from }),
      field({ kind: 'datetime-local', name: 'to', label: 'To (UTC)', value: query.to }),
    ],
  );
}

function eventTable(
  request: FastifyRequest,
  events: readonly MonitorEvent[],
  { nowMs, hasMore, filter }: { nowMs: number; hasMore: boolean; filter: Content },
) {
  const last = events.at(-1);
  const older =
    hasMore && last && !wantedFile(request) ? withQuery(request.url, { after: last.id }) : undefined;
  const isLater = (request.query as Query).after !== undefined;
  return dataTable<MonitorEvent>(request, {
    id: 'events',
    caption: 'Events',
    card: { title: 'kind', line: ['at', 'sensor'] },
    isStacked: true,
    rows: events,
    isComplete: !hasMore,
    filter,
    columns: [
      {
        key: 'at',
        header: 'When',
        cell: (row) => moment(row.occurredAtMs, nowMs),
        value: (row) => isoTime(row.occurredAtMs),
      },
      {
        key: 'kind',
        header: 'Kind',
        cell: (row) => eventName(row.kind),
        value: (row) => row.kind,
      },
      {
        key: 'sensor',
        header: 'Sensor',
        cell: (row) => row.hostName ?? html`<span class="hint absent">–</span>`,
        value: (row) => row.hostName,
      },
      {
        key: 'details',
        header: 'Details',
        kind: 'prose',
        cell: (row) => describeEvent(row),
        value: (row) => JSON.stringify(row.details),
      },
    ],
    pages:
      older || isLater
        ? {
            label: isLater ? 'Older events' : `The newest ${events.length}`,
            previousHref: isLater ? withQuery(request.url, { after: undefined }) : undefined,
            nextHref: older,
          }
        : undefined,
    empty: {
      title: 'No events',
      text: isLater
        ? 'There are no older events.'
        : 'Rejected uploads and addresses that two devices claim appear here.',
    },
  });
}
