/** The gallery's sections, with data of its own making that shows the edges: gaps, long names, unknowns, nothing. */

import { agenda, badge, banner, emptyState, progress, skeleton } from './feedback.ts';
import { actionButton, askButton, confirm, field, fieldGroup, form, otherSubmit } from './form.ts';
import { formatBytes, formatCount, formatMoney } from './format.ts';
import { type Content, type Html, html } from './html.ts';
import { link } from './link.ts';
import { drawer, estimate, refreshing } from './navigation.ts';
import { section } from './page-header.ts';
import { type Column, readSort, shareBar, table } from './table.ts';
import { age, code, codeBlock, copyButton, definitionList, moment } from './text.ts';

interface GalleryServer {
  name: string;
  address: string;
  state: 'running' | 'stopped' | 'attacked';
  inBytes: number | null;
  share: number;
  seenMs: number;
}

export const galleryServers: readonly GalleryServer[] = [
  {
    name: 'web-1',
    address: '198.51.100.17',
    state: 'attacked',
    inBytes: 81_274_000_123,
    share: 0.62,
    seenMs: 20_000,
  },
  {
    name: 'web-2',
    address: '198.51.100.18',
    state: 'running',
    inBytes: 12_000_000,
    share: 0.21,
    seenMs: 20_000,
  },
  {
    name: 'database-with-a-very-long-name-that-a-program-generated',
    address: '2001:db8:4f3a:1200:5054:ff:fe12:3456',
    state: 'running',
    inBytes: 7_120_000,
    share: 0.13,
    seenMs: 80_000,
  },
  {
    name: 'backup',
    address: '203.0.113.9',
    state: 'stopped',
    inBytes: null,
    share: 0,
    seenMs: 5 * 86_400_000,
  },
];

const stateBadges = {
  running: badge('good', 'running'),
  stopped: badge('neutral', 'stopped'),
  attacked: badge('bad', 'under attack'),
};

const serverColumns = (nowMs: number, csrfToken: string): Column<GalleryServer>[] => [
  {
    key: 'name',
    header: 'Server',
    sortable: true,
    cell: (row) => link(`/dev/gallery?server=${encodeURIComponent(row.name)}`, row.name),
  },
  { key: 'state', header: 'State', cell: (row) => stateBadges[row.state] },
  { key: 'address', header: 'Address', kind: 'code', cell: (row) => row.address },
  {
    key: 'in',
    header: 'In',
    unit: 'MB',
    kind: 'figure',
    sortable: true,
    cell: (row) => (row.inBytes === null ? undefined : formatCount(Math.round(row.inBytes / 1e6))),
  },
  {
    key: 'share',
    header: 'Share of site',
    kind: 'figure',
    cell: (row) => shareBar(row.inBytes === null ? null : row.share),
  },
  { key: 'seen', header: 'Last sample', kind: 'figure', cell: (row) => age(nowMs - row.seenMs, nowMs) },
  {
    key: 'actions',
    header: '',
    kind: 'actions',
    cell: () => actionButton({ action: '/dev/gallery', csrfToken: 'gallery', label: 'Restart' }),
  },
  {
    key: 'actions',
    header: '',
    kind: 'actions',
    cell: (row) =>
      askButton(
        {
          id: `detach-${galleryServers.indexOf(row)}`,
          label: 'Detach',
          title: `Detach ${row.name}?`,
          openKind: 'button',
          action: '/dev/gallery',
          csrfToken,
        },
        'Its connections over the network backend end at once, and its address there may go to another server.',
      ),
  },
];

/** Tables: sorted with pages and files, refreshed, empty. */
export function galleryTables(
  url: string,
  query: Readonly<Record<string, unknown>>,
  nowMs: number,
  csrfToken: string,
): Html {
  const columns = serverColumns(nowMs, csrfToken);
  const sort = readSort(query, columns, { by: 'in', direction: 'desc' });
  const filter = form(
    { action: '/dev/gallery', method: 'get', submit: 'Filter', submitKind: 'button', layout: 'inline' },
    [
      field({ id: 'filter-name', name: 'name', label: 'Name contains', placeholder: 'web' }),
      field({
        kind: 'select',
        name: 'state',
        label: 'State',
        options: [
          { value: '', label: 'any' },
          { value: 'running', label: 'running' },
        ],
      }),
    ],
  );
  return section({ title: 'Tables', id: 'tables' }, [
    refreshing(
      { id: 'servers', url: '/dev/gallery', everySeconds: 20 },
      table({
        caption: 'Servers',
        card: { line: ['state', 'in', 'out'] },
        columns,
        rows: galleryServers,
        url,
        sort,
        filter,
        rowTone: (row) => (row.state === 'attacked' ? 'bad' : undefined),
        pages: { label: '1–4 of 312', nextHref: '/dev/gallery?after=4' },
        csvHref: '/dev/gallery?format=csv',
        jsonHref: '/dev/gallery?format=json',
        empty: { title: 'No servers', text: 'Deploy one.' },
      }),
    ),
    table({
      caption: 'Errors',
      card: { line: ['when'] },
      refreshSeconds: 0,
      captionVisible: true,
      columns: [
        { key: 'status', header: 'Status', kind: 'code', cell: (row) => row.status },
        { key: 'when', header: 'When', kind: 'prose', cell: (row) => row.when },
      ],
      rows: [
        { status: '401', when: 'The key is missing or not valid. All causes give this one answer.' },
        {
          status: '403',
          when: 'The account has no billing profile, or it is suspended, or it is closed, or the key may only read and the call would change something; the reason says which.',
        },
      ],
      empty: { title: 'No errors', text: 'There are none.' },
    }),
    table({
      caption: 'Networks',
      card: { line: [] },
      refreshSeconds: 0,
      columns: [{ key: 'name', header: 'Name', cell: () => '' }],
      rows: [],
      empty: {
        title: 'No servers yet',
        text: 'A server appears here as soon as it is ordered, with its address and its traffic.',
        command:
          'curl -H "Authorization: Bearer $KEY" -X POST https://example.net/api/v1/servers -d @server.json',
        action: { label: 'Deploy a server', href: '/dev/gallery' },
      },
    }),
  ]);
}

/** Forms: every kind of field, hints, errors, and the guard of what can't be undone. */
export function galleryForms(csrfToken: string): Html {
  return section(
    {
      title: 'Forms',
      id: 'forms',
      actions: drawer(
        { id: 'drawer-key', open: 'Open a drawer', title: 'New API key' },
        keyForm(csrfToken, 'drawer_'),
      ),
    },
    [
      html`<div class="card">${keyForm(csrfToken, '')}</div>`,
      form(
        {
          action: '/dev/gallery',
          csrfToken,
          submit: 'Order',
          cancel: otherSubmit({ action: '/dev/gallery', label: 'Check the price' }),
        },
        [
          fieldGroup(
            { legend: 'Events', hint: 'Checkboxes that are one question.' },
            ['server.created', 'server.provisioned', 'key.created'].map((name, index) =>
              field({
                kind: 'checkbox',
                id: `gallery-event-${index}`,
                name: 'events',
                label: name,
                value: name,
              }),
            ),
          ),
          estimate({ id: 'gallery-estimate', url: '/dev/gallery' }, [
            html`<p><strong>Small</strong> $0.0060 an hour, at most $4.00 a month</p>`,
            html`<p class="hint">Due now: nothing.</p>`,
          ]),
        ],
      ),
      confirm({
        action: '/dev/gallery',
        csrfToken,
        name: 'web-1',
        consequence: 'This permanently deletes web-1 with its disk and releases its IP addresses.',
        submit: 'Destroy server',
      }),
    ],
  );
}

function keyForm(csrfToken: string, prefix: string): Html {
  return form(
    { action: '/dev/gallery', csrfToken, submit: 'Create key', cancel: link('/dev/gallery', 'Cancel') },
    [
      field({
        name: `${prefix}name`,
        label: 'Name',
        hint: 'What will use the key, so that you know it later.',
        value: 'deploy',
        required: true,
      }),
      field({
        name: `${prefix}network`,
        label: 'Allowed network',
        error: '10.0.0.0/40 is no network. Write it like 10.0.0.0/24.',
        value: '10.0.0.0/40',
        isCode: true,
      }),
      field({
        kind: 'select',
        name: `${prefix}scope`,
        label: 'Scope',
        value: 'read',
        options: [
          { value: 'read', label: 'Read' },
          { value: 'full', label: 'Full' },
        ],
      }),
      field({
        kind: 'textarea',
        name: `${prefix}note`,
        label: 'Note',
        rows: 3,
        value: 'Rotated every quarter.',
      }),
      field({
        kind: 'number',
        name: `${prefix}days`,
        label: 'Expires in (days)',
        min: 1,
        max: 365,
        disabled: true,
        value: 90,
      }),
      field({
        kind: 'checkbox',
        name: `${prefix}notify`,
        label: 'Tell me before it ends',
        checked: true,
        hint: 'By email, a week before.',
      }),
    ],
  );
}

/** Badges, notices, progress, skeletons, buttons. */
export function galleryFeedback(): Html {
  return section({ title: 'States and outcomes', id: 'feedback' }, [
    html`<div class="actions">${badge('neutral', 'stopped')}${badge('info', 'deploying')}${badge('good', 'running')}${badge('warn', 'late')}${badge('bad', 'under attack')}</div>`,
    html`<div class="actions">${link('/dev/gallery', 'Primary', { kind: 'primary' })}${link('/dev/gallery', 'Button', { kind: 'button' })}${link('/dev/gallery', 'Danger', { kind: 'danger' })}<button class="button" type="button" disabled>Disabled</button>${link('/dev/gallery', 'Plain link')}</div>`,
    banner({
      tone: 'info',
      title: 'The sensor of node-3 is new',
      text: 'Its first minute arrives within two minutes.',
    }),
    banner({ tone: 'good', title: 'Saved' }),
    banner({
      tone: 'warn',
      title: 'Credit ends in 3 days',
      text: 'Servers stop when it reaches zero. Add credit or a card.',
      actions: link('/dev/gallery', 'Add credit', { kind: 'button' }),
    }),
    banner({
      tone: 'bad',
      title: 'The server was not started',
      text: 'node-3 did not answer within 30 s. Try again, or start it on another node.',
    }),
    html`<div class="card">${progress({ label: 'Deploying web-3', value: 3, max: 7, detail: 'Writing the disk, step 3 of 7' })}</div>`,
    html`<div class="card">${progress({ label: 'Looking for a node', detail: 'This may take a minute; you may leave this page.' })}</div>`,
    html`<div class="table-frame">${skeleton(3)}</div>`,
    agenda('What waits', [
      { tone: 'bad', state: 'now', title: 'node-3 does not answer', text: '4 servers run on it.' },
      { tone: 'warn', state: 'soon', title: 'One charge is unconfirmed', text: 'Payment result unknown.' },
    ]),
    html`<div class="card">${emptyState({ title: 'All quiet', text: 'Incidents appear here when traffic leaves what is expected.' })}</div>`,
  ]);
}

/** Facts, code, copy buttons, moments, money. */
export function galleryText(nowMs: number): Content {
  return section({ title: 'Facts and code', id: 'text' }, [
    definitionList([
      { term: 'Address', value: code('2001:db8:4f3a:1200:5054:ff:fe12:3456', true) },
      { term: 'MAC', value: code('52:54:00:12:34:56', true) },
      { term: 'Deployed', value: moment(nowMs - 3_600_000 * 31, nowMs) },
      { term: 'Disk', value: formatBytes(40_000_000_000) },
      { term: 'Price', value: `${formatMoney(125)} an hour` },
      { term: 'Balance', value: formatMoney(-12_345_600) },
      { term: 'Host', value: undefined },
      { term: 'Last backup', value: age(null, nowMs) },
    ]),
    codeBlock({
      label: 'Answer',
      code: '{\n  "id": 17,\n  "name": "web-1",\n  "description": "a long line that does not fit on a phone and therefore scrolls inside its own box",\n  "state": "running"\n}',
    }),
    html`<p>${copyButton('svc_demo', 'Copy the key')}</p>`,
  ]);
}
