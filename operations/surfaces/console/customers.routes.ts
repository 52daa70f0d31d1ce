import type { Accounts, Tenant } from '#operations/accounts/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  code,
  formatCount,
  formatMoney,
  formatTime,
  type Html,
  link,
  pageHeader,
  sendPage,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from './frame.ts';
import type { Staff } from './guard.ts';

export interface CustomersDeps {
  accounts: Accounts;
  billing: Billing;
  servers: Servers;
}

interface Row {
  tenant: Tenant;
  serverCount: number;
  balanceQuanta: number | null;
}

const tones: Record<Tenant['status'], Tone> = { ACTIVE: 'good', SUSPENDED: 'warn', CLOSED: 'neutral' };

/** `/console/`: every tenant, with its state and what it has. */
export function registerCustomers(app: App, deps: CustomersDeps): void {
  app.get('/', async (request, reply) => {
    const staff = request.staff!;
    const tenants = await deps.accounts.listTenants(staff.actor);
    const ids = tenants.map((tenant) => tenant.id);
    const [counts, access] = await Promise.all([
      deps.servers.countOfTenants(ids),
      deps.billing.accessOf(ids),
    ]);
    const rows = tenants.map((tenant) => ({
      tenant,
      serverCount: counts.get(tenant.id) ?? 0,
      balanceQuanta: access.get(tenant.id)?.balanceQuanta ?? null,
    }));
    return sendPage(reply, customersPage(staff, rows));
  });
}

function customersPage(staff: Staff, rows: readonly Row[]): Html {
  const suspended = rows.filter((row) => row.tenant.status === 'SUSPENDED').length;
  const state =
    suspended > 0
      ? { tone: 'warn' as const, text: `${suspended} of ${rows.length} tenants suspended.` }
      : { tone: 'good' as const, text: `${formatCount(rows.length)} tenants, none suspended.` };
  return consoleFrame(
    { staff, title: 'Customers', current: 'customers', breadcrumb: [{ label: 'Customers' }] },
    [
      pageHeader({ title: 'Customers', state }),
      table<Row>({
        caption: 'Tenants',
        columns: [
          {
            key: 'name',
            header: 'Tenant',
            cell: ({ tenant }) => link(`/console/servers/?tenant=${tenant.id}`, tenant.name),
          },
          { key: 'organization', header: 'Organization', cell: ({ tenant }) => tenant.organizationName },
          { key: 'id', header: 'Id', kind: 'code', cell: ({ tenant }) => code(String(tenant.id)) },
          {
            key: 'status',
            header: 'Status',
            cell: ({ tenant }) => badge(tones[tenant.status], tenant.status.toLowerCase()),
          },
          { key: 'servers', header: 'Servers', kind: 'figure', cell: (row) => formatCount(row.serverCount) },
          { key: 'credit', header: 'Credit', kind: 'figure', cell: (row) => formatMoney(row.balanceQuanta) },
          {
            key: 'profile',
            header: 'Billing profile',
            cell: ({ tenant }) => (tenant.hasBillingProfile ? 'given' : badge('warn', 'missing')),
          },
          {
            key: 'created',
            header: 'Since',
            cell: ({ tenant }) => formatTime(tenant.createdAt.getTime(), 'day'),
          },
        ],
        rows,
        empty: {
          title: 'No customers yet',
          text: 'Organizations and their tenants will stand here once somebody has signed up.',
        },
      }),
    ],
  );
}
