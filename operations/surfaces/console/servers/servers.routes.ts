/** `/console/servers/`: every server, or one tenant's; those that failed wait here for an operator. */
import type { Tenant } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import { statusOf } from '#operations/servers/index.ts';
import type { Server, ServerStatus } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  age,
  badge,
  type Column,
  cellColumn,
  code,
  codeColumn,
  formatCount,
  html,
  link,
  pageHeader,
  sendPage,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  idCursor,
  idFilter,
  type ListFilter,
  numberOf,
  readFilters,
  readList,
  sendWantedFile,
} from '#service-kit/web/index.ts';
import { changingStatuses } from '../../parts/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { readListTraffic, serverTrafficColumns } from '../traffic-columns.ts';

const statusChoices: readonly { value: string; label: string; statuses: readonly ServerStatus[] }[] = [
  { value: 'failed', label: 'Failed provisioning', statuses: ['failed'] },
  { value: 'running', label: 'Running', statuses: ['running'] },
  { value: 'stopped', label: 'Stopped', statuses: ['stopped'] },
  { value: 'changing', label: 'Changing', statuses: changingStatuses },
  { value: 'unknown', label: 'Unknown', statuses: ['unknown'] },
];
const filters: readonly ListFilter[] = [
  { name: 'status', label: 'Status', by: 'tabs', options: statusChoices },
  // The search of the frame.
  { name: 'q', label: 'Name, host name, id or address', by: 'link' },
  idFilter('tenant'),
];

export function registerServers(app: App, deps: Features): void {
  app.get('/servers/', async (request, reply) => {
    const staff = request.staff!;
    const { actor } = staff;
    const { status, tenant: id, q } = readFilters(request, filters);
    const tenantId = numberOf(id) ?? null;
    const filter = {
      ...(q !== undefined && { search: q }),
      ...(status !== undefined && {
        statuses: statusChoices.find(({ value }) => value === status)!.statuses,
      }),
    };
    const [counts, tenants] = await Promise.all([
      deps.servers.countByStatus(actor, tenantId),
      deps.accounts.listTenants(actor),
    ]);
    const list = await readList(request, {
      ...{ id: 'servers', caption: 'Servers', path: '/console/servers/', filters },
      card: { line: ['status', 'tenant', 'addresses'] },
      cursor: idCursor<Server>(),
      read: (_, { limit, after }) =>
        deps.servers.listServers(actor, tenantId, {
          ...{ ...filter, order: 'newest', limit },
          ...(after !== undefined && { after: { id: after, name: '' } }),
        }),
      count: () => deps.servers.countServers(actor, tenantId, { ...filter, order: 'newest', limit: 1 }),
      columns: (servers) => columnsFor(deps, staff, { servers, tenants, isFailed: status === 'failed' }),
      rowTone: (server) => (statusOf(server) === 'failed' ? 'bad' : undefined),
      empty: { title: 'No servers', text: 'Servers that customers deploy appear here.' },
      noMatch:
        status === 'failed'
          ? {
              title: 'Nothing has failed',
              text: 'A server whose provisioning failed appears here until an operator retries or resolves it. The customer cannot destroy it before that.',
            }
          : { title: 'No server matches', text: 'Names, host names, ids and addresses are searched.' },
    });
    const tenant = tenants.find((each) => each.id === tenantId);
    const title = tenant ? `Servers of ${tenant.name}` : 'Servers';
    const all = { label: 'Servers', href: '/console/servers/' };
    const breadcrumb =
      tenantId === null ? [{ label: title }] : [all, { label: tenant?.name ?? 'unknown tenant' }];
    const ofChoices = statusChoices.map(({ value, statuses }) => [value, sumOf(counts, statuses)]);
    return (
      sendWantedFile(request, reply, 'console') ??
      sendPage(
        reply,
        consoleFrame({ staff, title, current: 'servers', breadcrumb, searched: q }, [
          pageHeader({ title, state: stateOf(counts) }),
          list.tabs('status', 'Servers by status', { '': sumOf(counts), ...Object.fromEntries(ofChoices) }),
          list.table,
        ]),
      )
    );
  });
}

type Counts = ReadonlyMap<ServerStatus, number>;

const sumOf = (counts: Counts, statuses?: readonly ServerStatus[]) =>
  [...counts].reduce((sum, [status, count]) => (statuses?.includes(status) === false ? sum : sum + count), 0);

async function columnsFor(
  deps: Features,
  staff: Staff,
  {
    servers,
    tenants,
    isFailed,
  }: { servers: readonly Server[]; tenants: readonly Tenant[]; isFailed: boolean },
): Promise<Column<Server>[]> {
  const nowMs = deps.clock.nowMs();
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  const columns: Column<Server>[] = [
    cellColumn('name', 'Name', (server) => [
      link(`/console/servers/${server.id}`, server.name),
      html` <span class="hint">#${server.id}</span>`,
    ]),
    cellColumn('tenant', 'Customer', (server) =>
      link(`/console/customers/${server.tenantId}`, names.get(server.tenantId) ?? 'unknown'),
    ),
    cellColumn('status', 'Status', (server) => badge(toneOf(server), statusOf(server))),
    cellColumn('since', 'Since', (server) => age(server.statusChangedAt.getTime(), nowMs)),
  ];
  // What was said and what can be done stand beside the name: the rest may be scrolled to.
  if (isFailed) {
    const [name, customer, , since] = columns as [Column<Server>, ...Column<Server>[]];
    return [name, ...failureColumns(staff, await detailsOf(deps, staff, servers)), customer!, since!];
  }
  const serverIds = servers.map((server) => server.id);
  const traffic = await readListTraffic(deps.protectTraffic, staff.actor, { serverIds }, nowMs);
  return [
    ...columns,
    ...serverTrafficColumns<Server>(traffic, (server) => server.id, nowMs),
    codeColumn('addresses', 'Addresses', (server) =>
      server.addresses.map(({ address }) => html`<div>${code(address)}</div>`),
    ),
    cellColumn('plan', 'Plan', (server) => server.planName),
    cellColumn(
      'location',
      'Location',
      (server) => html`<div>${server.locationName}</div><div>${code(server.node ?? 'none yet')}</div>`,
    ),
  ];
}

/** What hypervisors said, by the id of the server. */
async function detailsOf(deps: Features, { actor }: Staff, servers: readonly Server[]) {
  const details = new Map<number, string>();
  for (const { id } of servers) {
    const detail = await deps.servers.findFailureDetail(actor, id);
    if (detail !== null) details.set(id, detail);
  }
  return details;
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
    codeColumn('node', 'Node', (server) => server.node ?? 'none yet'),
  ];
}

export function toneOf(server: Server): Tone {
  const status = statusOf(server);
  if (status === 'failed') return 'bad';
  if (status === 'running') return 'good';
  if (status === 'deleting') return 'warn';
  return status === 'stopped' || status === 'unknown' ? 'neutral' : 'info';
}

function stateOf(counts: Counts): { tone: Tone; text: string } {
  const failed = counts.get('failed') ?? 0;
  const running = counts.get('running') ?? 0;
  const told = `${formatCount(running)} of ${formatCount(sumOf(counts))} running`;
  return failed > 0
    ? { tone: 'bad', text: `${failed} failed to provision and need an operator, ${told}.` }
    : { tone: 'good', text: `${told}, none failed.` };
}
