import type { Tenant } from '#operations/accounts/index.ts';
import { statusOf } from '#operations/servers/index.ts';
import type { Server, ServerStatus } from '#operations/views/index.ts';
import {
  actionButton,
  age,
  badge,
  type Column,
  code,
  formatCount,
  type Html,
  html,
  link,
  pageHeader,
  type Tone,
  table,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { changingStatuses } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { type ListTraffic, serverTrafficColumns } from '../traffic-columns.ts';

export interface ServersQuery extends Record<string, string | undefined> {
  q?: string;
  tenant?: string;
  /** One of `statusChoices`. */
  status?: string;
  after?: string;
}

export interface ServersPageOptions {
  staff: Staff;
  servers: readonly Server[];
  tenants: readonly Tenant[];
  counts: ReadonlyMap<ServerStatus, number>;
  query: ServersQuery;
  url: string;
  total: number;
  nextHref: string | undefined;
  /** What hypervisors said, by the id of the failed server. */
  details: ReadonlyMap<number, string>;
  traffic: ListTraffic;
  nowMs: number;
}

export const statusChoices: readonly { value: string; label: string; statuses: readonly ServerStatus[] }[] = [
  { value: 'failed', label: 'Failed provisioning', statuses: ['failed'] },
  { value: 'running', label: 'Running', statuses: ['running'] },
  { value: 'stopped', label: 'Stopped', statuses: ['stopped'] },
  { value: 'changing', label: 'Changing', statuses: changingStatuses },
  { value: 'unknown', label: 'Unknown', statuses: ['unknown'] },
];

/** `/console/servers/`: every server, or one tenant's; those that failed wait here for an operator. */
export function serversPage(options: ServersPageOptions): Html {
  const { staff, servers, tenants, query, url, counts } = options;
  const tenant = tenants.find((each) => String(each.id) === query.tenant);
  const title = tenant ? `Servers of ${tenant.name}` : 'Servers';
  const href = (status: string | undefined) => withQuery(url, { status, after: undefined });
  return consoleFrame(
    {
      staff,
      title,
      current: 'servers',
      breadcrumb:
        query.tenant === undefined
          ? [{ label: 'Servers' }]
          : [{ label: 'Servers', href: '/console/servers/' }, { label: tenant?.name ?? 'unknown tenant' }],
      searched: query.q,
    },
    [
      pageHeader({ title, state: stateOf(counts) }),
      tabs('Servers by status', [
        { label: 'All', href: href(undefined), current: query.status === undefined, count: sumOf(counts) },
        ...statusChoices.map((choice) => ({
          label: choice.label,
          href: href(choice.value),
          current: query.status === choice.value,
          count: sumOf(counts, choice.statuses),
        })),
      ]),
      table<Server>({
        caption: 'Servers',
        card: { line: ['status', 'tenant', 'addresses'] },
        columns: columnsFor(options),
        rows: servers,
        rowTone: (server) => (statusOf(server) === 'failed' ? 'bad' : undefined),
        pages: pagesOf(options),
        empty: emptyOf(options),
      }),
    ],
  );
}

const sumOf = (counts: ServersPageOptions['counts'], statuses?: readonly ServerStatus[]) =>
  [...counts].reduce((sum, [status, count]) => (statuses?.includes(status) === false ? sum : sum + count), 0);

function pagesOf({ servers, total, nextHref, query, url }: ServersPageOptions) {
  const isFirst = query.after === undefined;
  if (nextHref === undefined && isFirst) return undefined;
  return {
    label: `${formatCount(servers.length)} of ${formatCount(total)}`,
    nextHref,
    previousHref: isFirst ? undefined : withQuery(url, { after: undefined }),
  };
}

function emptyOf({ query }: ServersPageOptions) {
  if (query.status === 'failed')
    return {
      title: 'Nothing has failed',
      text: 'A server whose provisioning failed appears here until an operator retries or resolves it. The customer cannot destroy it before that.',
    };
  if (query.status !== undefined || query.q !== undefined)
    return { title: 'No server matches', text: 'Names, host names, ids and addresses are searched.' };
  return { title: 'No servers', text: 'Servers that customers deploy appear here.' };
}

function columnsFor({
  staff,
  tenants,
  query,
  details,
  traffic,
  nowMs,
}: ServersPageOptions): Column<Server>[] {
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const columns: Column<Server>[] = [
    {
      key: 'name',
      header: 'Name',
      cell: (server) => [
        link(`/console/servers/${server.id}`, server.name),
        html` <span class="hint">#${server.id}</span>`,
      ],
    },
    {
      key: 'tenant',
      header: 'Customer',
      cell: (server) =>
        link(`/console/customers/${server.tenantId}`, names.get(server.tenantId) ?? 'unknown'),
    },
    { key: 'status', header: 'Status', cell: (server) => badge(toneOf(server), statusOf(server)) },
    { key: 'since', header: 'Since', cell: (server) => age(server.statusChangedAt.getTime(), nowMs) },
  ];
  // What was said and what can be done stand beside the name: the rest may be scrolled to.
  if (query.status === 'failed') {
    const [name, customer, , since] = columns as [Column<Server>, ...Column<Server>[]];
    return [name, ...failureColumns(staff, details), customer!, since!];
  }
  return [
    ...columns,
    ...serverTrafficColumns<Server>(traffic, (server) => server.id, nowMs),
    {
      key: 'addresses',
      header: 'Addresses',
      kind: 'code',
      cell: (server) => server.addresses.map(({ address }) => html`<div>${code(address)}</div>`),
    },
    { key: 'plan', header: 'Plan', cell: (server) => server.planName },
    {
      key: 'location',
      header: 'Location',
      cell: (server) => html`<div>${server.locationName}</div><div>${code(server.node ?? 'none yet')}</div>`,
    },
  ];
}

function failureColumns(staff: Staff, details: ReadonlyMap<number, string>): Column<Server>[] {
  return [
    {
      key: 'failure',
      header: 'Hypervisor error',
      kind: 'prose',
      cell: (server) => details.get(server.id) ?? server.failure?.message,
    },
    {
      key: 'do',
      header: 'Actions',
      kind: 'actions',
      cell: (server) =>
        staff.canChange && [
          actionButton({
            action: `/console/servers/${server.id}/retry`,
            csrfToken: staff.csrfToken,
            label: 'Provision again',
          }),
          link(`/console/servers/${server.id}#resolve`, 'Resolve', { kind: 'button' }),
        ],
    },
    { key: 'node', header: 'Node', kind: 'code', cell: (server) => server.node ?? 'none yet' },
  ];
}

export function toneOf(server: Server): Tone {
  const status = statusOf(server);
  if (status === 'failed') return 'bad';
  if (status === 'running') return 'good';
  if (status === 'deleting') return 'warn';
  return status === 'stopped' || status === 'unknown' ? 'neutral' : 'info';
}

function stateOf(counts: ServersPageOptions['counts']): { tone: Tone; text: string } {
  const failed = counts.get('failed') ?? 0;
  const running = counts.get('running') ?? 0;
  const told = `${formatCount(running)} of ${formatCount(sumOf(counts))} running`;
  return failed > 0
    ? { tone: 'bad', text: `${failed} failed to provision and need an operator, ${told}.` }
    : { tone: 'good', text: `${told}, none failed.` };
}
