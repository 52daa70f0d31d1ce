/** Parts of the page `/operations`. */

import type { FastifyRequest } from 'fastify';
import { type AdminContract, isSpoken } from '#contracts/admin-api/contract.ts';
import { noticePath } from '#contracts/destroy-notice/index.ts';
import type { Feed, FeedState } from '#monitor/feeds/index.ts';
import type { ClusterCount, ImportState } from '#monitor/inventory/index.ts';
import type { ConnectionView, NoticeSecretStatus } from '#monitor/operations-client/index.ts';
import type { ClusterMapping, Site } from '#monitor/sites/index.ts';
import {
  actionButton,
  age,
  badge,
  banner,
  type Content,
  code,
  codeBlock,
  confirm,
  definitionList,
  drawer,
  field,
  form,
  formatCount,
  hiddenField,
  html,
  isoTime,
  moment,
  otherSubmit,
} from '#service-kit/pages/index.ts';
import { ageColumn, countColumn, dataTable, textColumn } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';

/** Input of a refused connection form. */
export interface TypedConnection {
  baseUrl: string;
  isEnabled: boolean;
  isSyncAutomatic: boolean;
  fault: string;
}

/** The saved connection and its actions; `contracts` are the contracts that use it. */
export function connectionPanel(
  view: ConnectionView | null,
  viewer: Viewer,
  refused: TypedConnection | undefined,
  contracts: readonly AdminContract[],
  nowMs: number,
): Content {
  const content = viewer.canChange && connectionForm(view, viewer, refused);
  if (!view) {
    return [
      banner({
        tone: 'info',
        title: 'How to connect',
        text: 'In operations, create an admin API project with the permissions to read the inventory and to deliver protect telemetry. Create a token for it and paste it here. Then test the connection, map each cluster to a site, and import.',
      }),
      content,
    ];
  }
  const actions = [
    actionButton({ action: '/operations/test', csrfToken: viewer.csrfToken, label: 'Test connection' }),
    actionButton({ action: '/operations/import', csrfToken: viewer.csrfToken, label: 'Sync now' }),
    !refused &&
      content &&
      drawer({ id: 'connection', open: 'Change connection', title: 'Change connection' }, content),
  ];
  return [
    connectionFacts(view, contracts, nowMs),
    viewer.canChange && html`<div class="actions">${actions}</div>`,
    // An error must be visible without opening the form.
    refused && content,
  ];
}

function connectionFacts(view: ConnectionView, contracts: readonly AdminContract[], nowMs: number): Content {
  const granted = contracts.map((contract) =>
    isSpoken(view.capabilities, contract)
      ? html`${badge('good', contract.permission)} `
      : html`${badge('warn', `${contract.permission} missing`)} `,
  );
  return definitionList([
    { term: 'Base URL', value: code(view.baseUrl) },
    { term: 'State', value: view.isEnabled ? badge('good', 'enabled') : badge('warn', 'disabled') },
    { term: 'Project', value: view.projectName },
    { term: 'Permissions', value: view.checkedAtMs === null ? null : granted },
    { term: 'Last test', value: moment(view.checkedAtMs, nowMs) },
    {
      term: 'Inventory',
      value: view.isSyncAutomatic ? 'imported automatically' : badge('warn', 'imported by “Sync now” only'),
    },
  ]);
}

function connectionForm(view: ConnectionView | null, viewer: Viewer, refused: TypedConnection | undefined) {
  return form(
    {
      action: '/operations/connection',
      csrfToken: viewer.csrfToken,
      submit: 'Test and save',
      cancel: otherSubmit({ action: '/operations/connection/untested', label: 'Save without a test' }),
      error: refused?.fault,
    },
    [
      field({
        name: 'base_url',
        kind: 'url',
        label: 'Base URL',
        required: true,
        value: refused?.baseUrl ?? view?.baseUrl ?? '',
        placeholder: 'https://operations.example',
        isCode: true,
      }),
      field({
        name: 'token',
        kind: 'password',
        label: 'Token',
        required: view === null,
        autocomplete: 'off',
        hint: view ? 'Leave empty to keep the stored token. It is never shown again.' : 'svcadm_…',
        isCode: true,
      }),
      field({
        name: 'is_enabled',
        kind: 'checkbox',
        label: 'Import the inventory and deliver minutes',
        hint: 'If not selected, the connection is not used. Destroy notices are still accepted.',
        checked: refused?.isEnabled ?? view?.isEnabled ?? true,
      }),
      field({
        name: 'is_sync_automatic',
        kind: 'checkbox',
        label: 'Import the inventory automatically',
        hint: 'If not selected, only “Sync now” imports it.',
        checked: refused?.isSyncAutomatic ?? view?.isSyncAutomatic ?? true,
      }),
    ],
  );
}

interface FeedLine {
  name: string;
  lastRunAtMs: number | null;
  lastSuccessAtMs: number | null;
  lastError: string | null;
  counts: Readonly<Record<string, number>>;
  newest: Content;
  newestMs: number | null;
}

/** A feed and its state; null before its first run. */
export interface ShownFeed {
  feed: Feed;
  state: FeedState | null;
}

export function feedTable(
  request: FastifyRequest,
  inventory: ImportState,
  feeds: readonly ShownFeed[],
  nowMs: number,
): Content {
  const rows: FeedLine[] = [
    {
      name: 'Inventory',
      ...inventory,
      counts: inventory.lastCounts,
      newest: html`<span class="hint">–</span>`,
      newestMs: null,
    },
    ...feeds.map(({ feed, state }): FeedLine => {
      const newest = state?.latestAcknowledged ?? null;
      return {
        name: feed.title,
        lastRunAtMs: state?.lastRunAtMs ?? null,
        lastSuccessAtMs: state?.lastReceiptAtMs ?? null,
        lastError: state?.lastError ?? null,
        counts: state?.lastCounts ?? {},
        newest: newest === null ? null : age((newest + feed.observation.seconds) * 1000, nowMs),
        newestMs: newest === null ? null : newest * 1000,
      };
    }),
  ];
  return dataTable<FeedLine>(request, {
    id: 'feeds',
    caption: 'Feeds',
    card: { line: ['run', 'success'] },
    rows,
    rowTone: (row) => (row.lastError === null ? undefined : 'warn'),
    columns: [
      { key: 'feed', header: 'Feed', cell: (row) => row.name, value: (row) => row.name },
      ageColumn('run', 'Last run', (row) => row.lastRunAtMs, nowMs, { field: 'last_run' }),
      ageColumn('success', 'Last confirmed', (row) => row.lastSuccessAtMs, nowMs, {
        field: 'last_confirmed',
      }),
      {
        key: 'minute',
        header: 'Newest delivered',
        kind: 'figure',
        cell: (row) => row.newest,
        field: 'newest_minute',
        value: (row) => isoTime(row.newestMs),
      },
      textColumn('counts', 'Last counts', (row) => describeCounts(row.counts)),
      {
        key: 'error',
        header: 'Last error',
        cell: (row) => row.lastError ?? undeliveredBadge(row.counts),
        value: (row) => row.lastError,
      },
    ],
    empty: { title: 'No feeds', text: 'Feeds run once a connection is saved.' },
  });
}

/** Targets that a run leaves out make no error of it. */
function undeliveredBadge({ unsupported = 0, unmapped = 0 }: Readonly<Record<string, number>>): Content {
  if (unsupported + unmapped === 0) return badge('good', 'none');
  const why = [
    unsupported > 0 && `${formatCount(unsupported)} not globally routable`,
    unmapped > 0 && `${formatCount(unmapped)} in a cluster without a site`,
  ].filter(Boolean);
  return [badge('warn', 'addresses not delivered'), html` <span class="hint">${why.join(', ')}</span>`];
}

function describeCounts(counts: Readonly<Record<string, number>>): string {
  const shown = Object.entries(counts).filter(([, value]) => value > 0);
  if (shown.length === 0) return 'nothing';
  return shown.map(([name, value]) => `${name.replaceAll('_', ' ')} ${formatCount(value)}`).join(', ');
}

export function clusterSection(
  request: FastifyRequest,
  known: readonly ClusterCount[],
  mappings: readonly ClusterMapping[],
  sites: readonly Site[],
  viewer: Viewer,
): Content {
  const siteOf = new Map(mappings.map((mapping) => [mapping.clusterId, mapping.siteId]));
  const counts = new Map(known.map((cluster) => [cluster.clusterId, cluster.machines]));
  const ids = [...new Set([...siteOf.keys(), ...counts.keys()])].sort((a, b) => a - b);
  const nameOf = (siteId: number | undefined) => sites.find((site) => site.id === siteId)?.name;
  return dataTable<number>(request, {
    id: 'clusters',
    caption: 'Clusters',
    card: { line: ['site', 'servers'] },
    rows: ids,
    columns: [
      { key: 'cluster', header: 'Cluster', cell: (id) => String(id), value: (id) => id },
      countColumn('servers', 'Servers', (id) => counts.get(id) ?? 0),
      {
        key: 'site',
        header: 'Site',
        cell: (id) =>
          viewer.canChange
            ? mappingForm(id, siteOf.get(id), sites, viewer)
            : (nameOf(siteOf.get(id)) ?? badge('warn', 'not mapped')),
        value: (id) => nameOf(siteOf.get(id)),
      },
    ],
    empty: { title: 'No clusters yet', text: 'They appear with the first import of the inventory.' },
  });
}

function mappingForm(clusterId: number, siteId: number | undefined, sites: readonly Site[], viewer: Viewer) {
  return form(
    {
      action: '/operations/clusters',
      csrfToken: viewer.csrfToken,
      submit: 'Map',
      submitKind: 'button',
      layout: 'inline',
    },
    [
      hiddenField('cluster_id', clusterId),
      field({
        kind: 'select',
        name: 'site_id',
        id: `cluster-${clusterId}`,
        label: `Site of cluster ${clusterId}`,
        isLabelHidden: true,
        value: siteId === undefined ? '' : String(siteId),
        options: [
          { value: '', label: 'Not mapped' },
          ...sites.map((site) => ({ value: String(site.id), label: site.name })),
        ],
      }),
    ],
  );
}

/** Text to type before a secret in use is replaced. */
export const secretName = 'new secret';

export function noticePanel(
  status: NoticeSecretStatus | null,
  secret: string | undefined,
  viewer: Viewer,
  monitorUrl: string,
  nowMs: number,
): Content {
  const create = { action: '/operations/notice-secret', csrfToken: viewer.csrfToken };
  return [
    secret && [
      banner({
        tone: 'good',
        title: 'This secret is shown only now',
        text: 'Set it in operations now: notices with another signature are refused from now on.',
      }),
      codeBlock({ label: 'Signing secret', code: secret }),
    ],
    definitionList([
      { term: 'Endpoint', value: code(`${monitorUrl}${noticePath}`, true) },
      {
        term: 'Secret',
        value: status ? html`created ${moment(status.createdAtMs, nowMs)}` : 'none; notices are refused',
      },
      {
        term: 'Refused',
        value:
          status === null || status.lastRefusedAtMs === null
            ? 'none since the change'
            : html`${formatCount(status.refusedCount)}, last ${moment(status.lastRefusedAtMs, nowMs)}`,
      },
    ]),
    viewer.canChange &&
      (status === null
        ? actionButton({ ...create, label: 'Create signing secret', kind: 'primary' })
        : html`<div class="actions">${drawer(
            {
              id: 'new-secret',
              open: 'Create a new secret',
              title: 'Create a new secret',
              openKind: 'danger',
            },
            confirm({
              ...create,
              name: secretName,
              consequence:
                'Notices signed with the present secret are refused at once, until operations has the new secret.',
              submit: 'Create new secret',
            }),
          )}</div>`),
  ];
}
