import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts, Tenant } from '#operations/accounts/index.ts';
import { type Server, type Servers, statusOf } from '#operations/servers/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  actionButton,
  badge,
  type Column,
  code,
  type Html,
  html,
  link,
  pageHeader,
  sendPage,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from './frame.ts';
import { noSuchPage, type Staff } from './guard.ts';

export interface ServersDeps {
  accounts: Accounts;
  servers: Servers;
}

const serversMax = 1_000;
const Query = Type.Object({ tenant: Type.Optional(Type.Integer({ minimum: 1 })) });
const Id = Type.Object({ id: Type.Integer({ minimum: 1 }) });

/** `/console/servers/`: every server, or one tenant's; what failed can be provisioned again. */
export function registerServers(app: App, deps: ServersDeps): void {
  app.get('/servers/', { schema: { querystring: Query } }, async (request, reply) => {
    const staff = request.staff!;
    const tenantId = request.query.tenant ?? null;
    const [servers, tenants] = await Promise.all([
      deps.servers.listServers(staff.actor, tenantId, { order: 'newest', limit: serversMax }),
      deps.accounts.listTenants(staff.actor),
    ]);
    return sendPage(reply, serversPage({ staff, servers, tenants, tenantId }));
  });

  app.post('/servers/:id/retry', { schema: { params: Id } }, async (request, reply) => {
    try {
      await deps.servers.retryProvisioning(request.staff!.actor, request.params.id);
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      if (error.code === 'servers.not_found') throw noSuchPage();
      throw new HttpError(409, { code: 'conflict', message: error.message });
    }
    return reply.redirect('/console/servers/', 303);
  });
}

interface PageOptions {
  staff: Staff;
  servers: readonly Server[];
  tenants: readonly Tenant[];
  tenantId: number | null;
}

function serversPage(options: PageOptions): Html {
  const { staff, servers, tenants, tenantId } = options;
  const tenant = tenants.find((each) => each.id === tenantId);
  const title = tenant ? `Servers of ${tenant.name}` : 'Servers';
  return consoleFrame(
    {
      staff,
      title,
      current: 'servers',
      breadcrumb:
        tenantId === null
          ? [{ label: 'Servers' }]
          : [{ label: 'Servers', href: '/console/servers/' }, { label: tenant?.name ?? 'unknown tenant' }],
    },
    [
      pageHeader({ title, state: stateOf(servers) }),
      table<Server>({
        caption: 'Servers',
        columns: columnsFor(options),
        rows: servers,
        rowTone: (server) => (statusOf(server) === 'failed' ? 'bad' : undefined),
        empty: { title: 'No servers', text: 'Servers that customers deploy will stand here.' },
      }),
    ],
  );
}

function columnsFor({ staff, tenants }: PageOptions): Column<Server>[] {
  const names = new Map(tenants.map((tenant) => [tenant.id, tenant.name]));
  return [
    {
      key: 'name',
      header: 'Name',
      cell: (server) => html`${server.name} <span class="hint">#${server.id}</span>`,
    },
    {
      key: 'tenant',
      header: 'Tenant',
      cell: (server) =>
        link(`/console/servers/?tenant=${server.tenantId}`, names.get(server.tenantId) ?? 'unknown'),
    },
    { key: 'status', header: 'Status', cell: (server) => badge(toneOf(server), statusOf(server)) },
    {
      key: 'addresses',
      header: 'Addresses',
      kind: 'code',
      cell: (server) => server.addresses.map((each, index) => [index > 0 && ' ', code(each.address)]),
    },
    { key: 'plan', header: 'Plan', cell: (server) => server.planName },
    { key: 'location', header: 'Location', cell: (server) => server.locationName },
    {
      key: 'failure',
      header: 'Failure',
      cell: (server) =>
        server.failure === null
          ? ''
          : [
              server.failure.message,
              staff.canChange &&
                actionButton({
                  action: `/console/servers/${server.id}/retry`,
                  csrfToken: staff.csrfToken,
                  label: 'Provision again',
                }),
            ],
    },
  ];
}

function toneOf(server: Server): Tone {
  const status = statusOf(server);
  if (status === 'failed') return 'bad';
  if (status === 'running') return 'good';
  return status === 'deleting' ? 'warn' : status === 'stopped' ? 'neutral' : 'info';
}

function stateOf(servers: readonly Server[]): { tone: Tone; text: string } {
  const failed = servers.filter((server) => statusOf(server) === 'failed').length;
  const running = servers.filter((server) => statusOf(server) === 'running').length;
  const text = `${running} of ${servers.length} running`;
  return failed > 0
    ? { tone: 'bad', text: `${failed} failed to provision, ${text}.` }
    : { tone: 'good', text: `${text}, none failed.` };
}
