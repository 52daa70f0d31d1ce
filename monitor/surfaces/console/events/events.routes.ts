/** `/sites/{id}/events`: a site's events, by kind, sensor and time. */
import { type GuardReason, guardReasonTitle } from '#contracts/guard-reasons.ts';
import { keptText } from '#contracts/retention.ts';
import type { MonitorEvent } from '#monitor/events/index.ts';
import { titleOfIncident } from '#monitor/incidents/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type Content, code, html, isoTime, link, moment, pageHeader } from '#service-kit/pages/index.ts';
import { idCursor, numberOf, readList } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { addressHref, addressText } from '../parts/address-link.ts';
import { eventName } from '../parts/words.ts';

export function registerEvents(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/events', { schema: { params: SiteParams } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const [kinds, sensors] = await Promise.all([deps.events.listKinds(site.id), deps.sensors.list(site.id)]);
    const found = await readList(request, {
      ...{ id: 'events', caption: 'Events', path: `/sites/${site.id}/events` },
      ...{ card: { title: 'kind', line: ['at', 'sensor'] }, isStacked: true },
      filters:
        kinds.length === 0
          ? []
          : [
              {
                ...{ name: 'kind', label: 'Kind', isOpen: true },
                options: kinds.map((value) => ({ value, label: eventName(value) })),
              },
              {
                ...{ name: 'sensor', label: 'Sensor' },
                options: sensors.map(({ id, hostName }) => ({ value: String(id), label: hostName })),
              },
              { kind: 'datetime-local', name: 'from', label: 'From (UTC)' },
              { kind: 'datetime-local', name: 'to', label: 'To (UTC)' },
            ],
      cursor: idCursor<MonitorEvent>(),
      read: ({ kind, sensor, from, to }, { limit, after }) =>
        deps.events.list(site.id, limit, {
          ...{ kind, fromMs: utc(from), toMs: utc(to), after },
          sensorId: numberOf(sensor),
        }),
      columns: [
        {
          ...{ key: 'at', header: 'When' },
          cell: (row) => moment(row.occurredAtMs, nowMs),
          value: (row) => isoTime(row.occurredAtMs),
        },
        { key: 'kind', header: 'Kind', cell: (row) => eventName(row.kind), value: (row) => row.kind },
        {
          ...{ key: 'sensor', header: 'Sensor' },
          cell: (row) => row.hostName ?? html`<span class="hint absent">–</span>`,
          value: (row) => row.hostName,
        },
        {
          ...{ key: 'details', header: 'Details', kind: 'prose' },
          cell: (row) => describeEvent(row),
          value: (row) => JSON.stringify(row.details),
        },
      ],
      empty: {
        title: 'No events',
        text: 'Rejected uploads and addresses that two devices claim appear here.',
      },
      noMatch: { title: 'No event matches', text: 'Choose other filters.' },
    });
    const content = [pageHeader({ title: 'Events', state: stateOf(found) }), found.table];
    return sendConsolePage(reply, { title: 'Events', site: { site, page: 'events' } }, content);
  });
}

/** A `datetime-local` field has no time zone: it is read as UTC, as its label says. */
function utc(given: string | undefined): number | undefined {
  if (!given || !/^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z?$/.test(given)) return undefined;
  const ms = Date.parse(`${given.replace(/Z$/, '')}Z`);
  return Number.isNaN(ms) ? undefined : ms;
}

function stateOf({
  rows,
  hasMore,
  isNarrowed,
  isFirst,
}: Awaited<ReturnType<typeof readList<MonitorEvent, number>>>) {
  if (rows.length === 0) return isNarrowed ? undefined : ({ tone: 'good', text: 'No events yet.' } as const);
  if (!isFirst) return undefined;
  const count = hasMore ? `${rows.length} newest` : String(rows.length);
  const said = `${count} ${isNarrowed ? 'match' : 'stored'}; events are kept for ${keptText('events')}.`;
  return { tone: 'info', text: said } as const;
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
  if (kind === 'spoofed_traffic' && address !== undefined && (reason ?? 'address') === 'address')
    return html`Another MAC sends from ${addressLink(siteId, address, '')}:${holders}. It does not count for the address.`;
  if (kind === 'spoofed_traffic') {
    const of = address === undefined ? '' : html` (${addressLink(siteId, address, '')})`;
    return html`Spoofed traffic of${holders}: ${guardReasonTitle(textOf(reason) as GuardReason)}${of}.`;
  }
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
