/** The first page of the reference: how the API works, and what every call may answer. All calls have a page of their own. */
import { errorKinds, webhookEvents } from '#contracts/customer-api/index.ts';
import { type Html, html, link, prose, section, table } from '#service-kit/pages/index.ts';
import type { Operation, ReferenceDocument } from './document.ts';
import type { Guide } from './guides.ts';

export function renderOverview(guides: readonly Guide[]): Html {
  return html`${guides.map((guide) => section({ title: guide.title, id: guide.id }, guide.content))}${errorTable()}${eventTable()}`;
}

export function renderCalls(document: ReferenceDocument, base: string): Html {
  return table<Operation>({
    caption: 'All calls',
    card: { line: ['what'] },
    refreshSeconds: 0,
    rows: document.resources.flatMap((resource) => resource.operations),
    columns: [
      {
        key: 'call',
        header: 'Call',
        kind: 'code',
        cell: (row) => link(`${base}${row.resource}/#${row.id}`, `${row.method} ${row.path}`),
      },
      { key: 'what', header: 'What it does', kind: 'prose', cell: (row) => row.summary },
      { key: 'key', header: 'Key', cell: (row) => row.scope },
      { key: 'versions', header: 'Versions', cell: (row) => (row.isInV1 ? 'v1, v2' : 'v2') },
    ],
    empty: { title: 'No calls', text: 'There are none.' },
  });
}

/** Every code and reason; each row is where the `doc_url` of such an error leads. */
function errorTable(): Html {
  const rows = errorKinds.toSorted((a, b) => a.status - b.status);
  return section(
    {
      title: 'All errors',
      id: 'errors',
      description: prose(
        'Every error is one JSON object: branch on `code`, show `message`, name `request_id` when you ask us. With `Accept: application/problem+json` it says the same in the members of RFC 9457.',
      ),
    },
    table<(typeof rows)[number]>({
      caption: 'Errors',
      card: { line: ['reason', 'text'] },
      refreshSeconds: 0,
      rows,
      columns: [
        { key: 'status', header: 'Status', kind: 'code', cell: (row) => String(row.status) },
        { key: 'code', header: 'Code', kind: 'code', cell: (row) => row.code },
        {
          key: 'reason',
          header: 'Reason',
          kind: 'code',
          cell: (row) =>
            html`<span id="error-${row.reason ?? row.code}" class="target">${row.reason ?? ''}</span>`,
        },
        { key: 'text', header: 'Meaning', kind: 'prose', cell: (row) => prose(row.sentence) },
      ],
      empty: { title: 'No errors', text: 'There are none.' },
    }),
  );
}

function eventTable(): Html {
  return section(
    { title: 'All events', id: 'events', description: 'What webhooks can tell you.' },
    table<(typeof webhookEvents)[number]>({
      caption: 'Events',
      card: { line: ['text', 'when'] },
      refreshSeconds: 0,
      rows: [...webhookEvents],
      columns: [
        { key: 'type', header: 'Type', kind: 'code', cell: (row) => row.type },
        { key: 'when', header: 'When', kind: 'prose', cell: (row) => row.summary },
      ],
      empty: { title: 'No events', text: 'There are none.' },
    }),
  );
}
