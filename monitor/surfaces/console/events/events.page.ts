/** The page of a site's events, newest first. */

import type { FastifyRequest } from 'fastify';
import { keptText } from '#contracts/retention.ts';
import type { MonitorEvent } from '#monitor/events/index.ts';
import { titleOfIncident } from '#monitor/incidents/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import {
  type Content,
  code,
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
import { addressHref, addressText } from '../parts/address-link.ts';
import { eventName } from '../parts/words.ts';

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

/** Describes an event in a sentence, with links to its subjects. */
const endings: Readonly<Record<string, string>> = {
  one_owner_left: 'one of them is left',
  machine_destroyed: 'the server of one of them was destroyed',
  segments_told_apart: 'they are on networks of their own',
};

/** Events of unknown kinds list their fields. */
function describeEvent(event: MonitorEvent): Content {
  const { kind, siteId, details } = event;
  const { address, segment, mac_addresses: macs, reason, sequence, spool_id: spool, error } = details;
  if (kind === 'telemetry_rejected' && sequence !== undefined)
    return html`Upload ${textOf(sequence)} of spool ${code(textOf(spool))} was skipped: ${textOf(error)}`;
  if (kind === 'ddos_detected' && siteId !== null) return describeAttack(siteId, details);
  const holders = Array.isArray(macs)
    ? macs.map((mac, index) => html`${index > 0 ? ' and ' : ' '}${code(String(mac))}`)
    : '';
  if (kind === 'ip_conflict_opened' && address !== undefined)
    return html`${addressLink(siteId, address, segment)} is claimed by${holders}`;
  if (kind === 'spoofed_traffic' && address !== undefined)
    return html`Another MAC sends from ${addressLink(siteId, address, '')}:${holders}. It does not count for the address.`;
  if (kind === 'ip_conflict_resolved' && address !== undefined)
    return html`${addressLink(siteId, address, segment)} was claimed by${holders}; ${endings[textOf(reason)] ?? textOf(reason)}`;
  return Object.entries(details).map(([name, value], index) => {
    const shown =
      name === 'address' ? addressLink(siteId, value, segment) : html`<span>${textOf(value)}</span>`;
    return html`${index > 0 ? '; ' : ''}${name.replaceAll('_', ' ')} ${shown}`;
  });
}

function describeAttack(siteId: number, details: MonitorEvent['details']): Content {
  const title = titleOfIncident({
    class: textOf(details.class) as never,
    severity: 'attack',
    direction: details.direction === 'outbound' ? 'outbound' : 'inbound',
    target: { kind: details.target_kind === 'capture' ? 'capture' : 'host', value: textOf(details.target) },
    isDrill: details.drill === true,
  });
  return link(`/sites/${siteId}/incidents/${textOf(details.incident_id)}`, title);
}

function addressLink(siteId: number | null, address: unknown, segment: unknown): Content {
  const place = { address: textOf(address), segment: typeof segment === 'string' ? segment : '' };
  return siteId === null ? addressText(place) : link(addressHref(siteId, place), addressText(place));
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.join(', ');
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
