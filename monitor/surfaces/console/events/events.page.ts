/** `/sites/{id}/events`: events, newest first, by kind, sensor and time. */
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { MonitorEvent } from '#monitor/events/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import type { App } from '#service-kit/http/index.ts';
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
import { dataTable, rowsLimit, wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { eventName } from '../parts/words.ts';
import { describeEvent } from './describe-event.ts';

const rowsShown = 100;
const Query = Type.Object({
  kind: Type.Optional(Type.String({ maxLength: 100 })),
  sensor: Type.Optional(Type.String({ maxLength: 20 })),
  from: Type.Optional(Type.String({ maxLength: 40 })),
  to: Type.Optional(Type.String({ maxLength: 40 })),
  after: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
});
type Query = Static<typeof Query>;

export function registerEventsPage(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/events',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const { query } = request;
      const limit = rowsLimit(request, rowsShown);
      const [found, kinds, sensors] = await Promise.all([
        deps.events.list(site.id, limit + 1, filterOf(query)),
        deps.events.listKinds(site.id),
        deps.sensors.list(site.id),
      ]);
      const events = found.slice(0, limit);
      const hasMore = found.length > limit;
      const content = [
        pageHeader({ title: 'Events', state: stateOf(query, events, hasMore) }),
        eventTable(request, events, {
          nowMs,
          hasMore,
          filter: filterForm(site.id, query, kinds, sensors),
        }),
      ];
      return sendConsolePage(request, reply, { title: 'Events', site: { site, page: 'events' } }, content);
    },
  );
}

function filterOf({ kind, sensor, from, to, after }: Query) {
  return {
    kind: kind || undefined,
    sensorId: sensor && /^\d{1,15}$/.test(sensor) ? Number(sensor) : undefined,
    fromMs: utc(from),
    toMs: utc(to),
    after,
  };
}

/** A `datetime-local` field has no time zone: it is read as UTC, as its label says. */
function utc(text: string | undefined): number | undefined {
  if (!text || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z?$/.test(text)) return undefined;
  const ms = Date.parse(`${text.replace(/Z$/, '')}Z`);
  return Number.isNaN(ms) ? undefined : ms;
}

function stateOf(query: Query, events: readonly MonitorEvent[], hasMore: boolean) {
  const isNarrowed = Boolean(query.kind || query.sensor || query.from || query.to);
  if (events.length === 0) {
    return isNarrowed ? undefined : ({ tone: 'good', text: 'No events yet.' } as const);
  }
  if (query.after) return undefined;
  const count = hasMore ? `${events.length} newest` : String(events.length);
  const text = `${count} ${isNarrowed ? 'match' : 'stored'}; events are kept for three months.`;
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
