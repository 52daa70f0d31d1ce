/** `/sites/{id}/events`: what happened, newest first. */
import type { MonitorEvent } from '#monitor/events/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { isoTime, moment, pageHeader } from '#service-kit/pages/index.ts';
import { dataTable, rowsLimit } from './data-table.ts';
import { SiteParams, sendConsolePage, siteOf } from './frame.ts';
import type { ConsoleDeps } from './index.ts';

const rowsMax = 200;

export function registerEventsPage(app: App, deps: ConsoleDeps): void {
  app.get('/sites/:siteId/events', { schema: { params: SiteParams } }, async (request, reply) => {
    const nowMs = Date.now();
    const site = await siteOf(deps.sites, request.params.siteId);
    const events = await deps.events.list(site.id, rowsLimit(request, rowsMax));
    const content = [
      pageHeader({ title: 'Events' }),
      dataTable<MonitorEvent>(request, {
        id: 'events',
        caption: 'Events',
        rows: events,
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
            kind: 'code',
            cell: (row) => row.kind,
            value: (row) => row.kind,
          },
          {
            key: 'details',
            header: 'Details',
            cell: (row) => describeDetails(row.details),
            value: (row) => JSON.stringify(row.details),
          },
        ],
        pages: events.length === rowsMax ? { label: `The newest ${rowsMax}` } : undefined,
        empty: {
          title: 'No events',
          text: 'What needs attention is noted here, such as an upload that was rejected.',
        },
      }),
    ];
    return sendConsolePage(request, reply, { title: 'Events', site: { site, page: 'events' } }, content);
  });
}

function describeDetails(details: Readonly<Record<string, unknown>>): string {
  return Object.entries(details)
    .map(
      ([name, value]) =>
        `${name.replaceAll('_', ' ')} ${typeof value === 'string' ? value : JSON.stringify(value)}`,
    )
    .join(', ');
}
