/** `/console/customers/`: all customers, a new one, and the page and ledger of one. */
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Tenant } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  chosenOf,
  code,
  field,
  form,
  formatCount,
  formatMoneyAbout,
  type Html,
  link,
  pageHeader,
  sendPage,
  type Tone,
  table,
  utcTime,
  withQuery,
} from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { customerTrafficColumns, type ListTraffic, readListTraffic } from '../traffic-columns.ts';
import { ledgerPage } from './ledger.page.ts';
import { newCustomerPage } from './new-customer.page.ts';
import { CustomerParams, type CustomersDeps, findCustomer, showCustomer } from './show-customer.ts';

const ListQuery = Type.Object({
  text: Type.Optional(Type.String({ maxLength: 200 })),
  status: Type.Optional(Type.String({ maxLength: 20 })),
  page: Type.Optional(Type.String({ maxLength: 8 })),
});
const DetailQuery = Type.Object({ done: Type.Optional(Type.String()) });
const LedgerQuery = Type.Object({ before: Type.Optional(Type.String({ pattern: '^[1-9][0-9]{0,14}$' })) });
const NewForm = Type.Object({
  organization: Type.String({ maxLength: 400 }),
  email: Type.String({ maxLength: 400 }),
  name: Type.String({ maxLength: 400 }),
});

const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  made: { tone: 'good', text: 'The customer is created.' },
  mailed: {
    tone: 'good',
    text: 'The customer is created. A link to set the password was emailed to the owner.',
  },
  credit: { tone: 'good', text: 'The payment is recorded.' },
  known: { tone: 'warn', text: 'This payment was recorded before. Nothing was changed.' },
  adjusted: { tone: 'good', text: 'The credit is adjusted.' },
  factors: { tone: 'good', text: 'The second factors are removed and all sessions ended.' },
  let_in: { tone: 'good', text: 'This person may sign in again.' },
  kept_out: { tone: 'good', text: 'Signed out. Reactivate to restore access.' },
  ACTIVE: { tone: 'good', text: 'The account is active.' },
  SUSPENDED: { tone: 'good', text: 'The account is suspended.' },
  CLOSED: { tone: 'good', text: 'The account is closed.' },
};

const customersPerPage = 100;
const ledgerPerPage = 100;

export function registerCustomers(app: App, deps: CustomersDeps): void {
  app.get('/customers/', { schema: { querystring: ListQuery } }, async (request, reply) => {
    const staff = request.staff!;
    const filter = { text: request.query.text?.trim() ?? '', status: request.query.status ?? '' };
    const all = await readRows(deps, await deps.accounts.listTenants(staff.actor));
    const fitting = all.filter((row) => fits(row, filter));
    const page = Math.max(1, Math.floor(Number(request.query.page)) || 1);
    const rows = fitting.slice((page - 1) * customersPerPage, page * customersPerPage);
    const hasMore = fitting.length > page * customersPerPage;
    const nowMs = deps.clock.nowMs();
    const tenantIds = rows.map((row) => row.tenant.id);
    const traffic = await readListTraffic(deps.protectTraffic, staff.actor, { tenantIds }, nowMs);
    return sendPage(
      reply,
      customersPage({ staff, all, rows, fittingCount: fitting.length, filter, traffic, page, hasMore }),
    );
  });

  app.get('/customers/new', async (request, reply) => {
    const staff = request.staff!;
    if (!staff.canChange) throw noSuchPage();
    return sendPage(reply, newCustomerPage({ staff }));
  });

  app.post('/customers/', { schema: { body: NewForm } }, async (request, reply) => {
    const staff = request.staff!;
    try {
      const { tenant, delivery } = await deps.accounts.createCustomer(staff.actor, request.body);
      // Without a mail server this answer alone holds the link, so it is no redirect.
      if (delivery !== null && delivery.kind !== 'mailed')
        return showCustomer(deps, request, reply, String(tenant.id), { toast: outcomes.made, delivery });
      return reply.redirect(`/console/customers/${tenant.id}?done=${delivery ? 'mailed' : 'made'}`, 303);
    } catch (error) {
      if (!(error instanceof CodedError) || error.code !== 'accounts.invalid') throw error;
      const fault = { field: String(error.details.field), message: error.message };
      return sendPage(reply, newCustomerPage({ staff, given: request.body, fault }), 422);
    }
  });

  app.get(
    '/customers/:id',
    { schema: { params: CustomerParams, querystring: DetailQuery } },
    async (request, reply) => {
      const { done } = request.query;
      return showCustomer(deps, request, reply, request.params.id, {
        toast: chosenOf(outcomes, done),
      });
    },
  );

  app.get(
    '/customers/:id/ledger',
    { schema: { params: CustomerParams, querystring: LedgerQuery } },
    async (request, reply) => {
      const staff = request.staff!;
      const tenant = await findCustomer(deps, request.params.id);
      const { before } = request.query;
      const page = { limit: ledgerPerPage + 1, ...(before ? { beforeId: Number(before) } : {}) };
      const found = await deps.billing.listEntries(staff.actor, tenant.id, page);
      const entries = found.slice(0, ledgerPerPage);
      const nextBeforeId = found.length > ledgerPerPage ? entries.at(-1)!.id : undefined;
      const balanceQuanta = await deps.billing.balanceOf(staff.actor, tenant.id);
      const isFirst = before === undefined;
      return sendPage(reply, ledgerPage({ staff, tenant, balanceQuanta, entries, isFirst, nextBeforeId }));
    },
  );
}

async function readRows(deps: CustomersDeps, tenants: readonly Tenant[]): Promise<CustomerRow[]> {
  const ids = tenants.map((tenant) => tenant.id);
  const [counts, access] = await Promise.all([deps.servers.countOfTenants(ids), deps.billing.accessOf(ids)]);
  return tenants.map((tenant) => ({
    tenant,
    serverCount: counts.get(tenant.id) ?? 0,
    balanceQuanta: access.get(tenant.id)?.balanceQuanta ?? null,
  }));
}

function fits({ tenant, balanceQuanta }: CustomerRow, { text, status }: CustomersFilter): boolean {
  const wanted = text.toLowerCase();
  const isNamed =
    wanted === '' ||
    String(tenant.id) === wanted ||
    [tenant.name, tenant.organizationName, tenant.slug].some((name) => name.toLowerCase().includes(wanted));
  const isStatus = status === '' || (status === 'debt' ? (balanceQuanta ?? 0) < 0 : tenant.status === status);
  return isNamed && isStatus;
}

interface CustomerRow {
  tenant: Tenant;
  serverCount: number;
  balanceQuanta: number | null;
}

/** `/console/customers/`: every tenant with its state and what it has. */
const statusTones: Record<Tenant['status'], Tone> = {
  ACTIVE: 'good',
  SUSPENDED: 'warn',
  CLOSED: 'neutral',
};

interface CustomersFilter {
  text: string;
  status: string;
}

interface CustomersPageOptions {
  staff: Staff;
  all: readonly CustomerRow[];
  /** Those of this page. */
  rows: readonly CustomerRow[];
  fittingCount: number;
  filter: CustomersFilter;
  traffic: ListTraffic;
  page: number;
  hasMore: boolean;
}

const path = '/console/customers/';

function customersPage(options: CustomersPageOptions): Html {
  const { staff, all, rows, filter } = options;
  return consoleFrame(
    { staff, title: 'Customers', current: 'customers', breadcrumb: [{ label: 'Customers' }] },
    [
      pageHeader({
        title: 'Customers',
        state: stateOf(all),
        actions: staff.canChange && link(`${path}new`, 'New customer', { kind: 'primary' }),
      }),
      table<CustomerRow>({
        caption: 'Customers',
        card: { line: ['status', 'servers', 'credit'] },
        filter: form(
          {
            action: path,
            method: 'get',
            layout: 'inline',
            submit: 'Filter',
            submitKind: 'button',
          },
          [
            field({ kind: 'search', name: 'text', label: 'Name, organization or id', value: filter.text }),
            field({
              kind: 'select',
              name: 'status',
              label: 'Status',
              value: filter.status,
              options: [
                { value: '', label: 'All' },
                { value: 'ACTIVE', label: 'Active' },
                { value: 'SUSPENDED', label: 'Suspended' },
                { value: 'CLOSED', label: 'Closed' },
                { value: 'debt', label: 'In debt' },
              ],
            }),
          ],
        ),
        columns: [
          {
            key: 'name',
            header: 'Customer',
            cell: ({ tenant }) => link(`/console/customers/${tenant.id}`, tenant.name),
          },
          {
            key: 'organization',
            header: 'Organization',
            cell: ({ tenant }) => (tenant.organizationName === tenant.name ? '' : tenant.organizationName),
          },
          { key: 'id', header: 'Id', kind: 'code', cell: ({ tenant }) => code(String(tenant.id)) },
          {
            key: 'status',
            header: 'Status',
            cell: ({ tenant }) => [
              badge(statusTones[tenant.status], tenant.status.toLowerCase()),
              !tenant.hasBillingProfile && [' ', badge('warn', 'no billing profile')],
            ],
          },
          { key: 'servers', header: 'Servers', kind: 'figure', cell: (row) => formatCount(row.serverCount) },
          ...customerTrafficColumns<CustomerRow>(options.traffic, (row) => row.tenant.id),
          {
            key: 'credit',
            header: 'Credit',
            kind: 'figure',
            cell: (row) => formatMoneyAbout(row.balanceQuanta, row.tenant.currency),
          },
          {
            key: 'created',
            header: 'Since',
            cell: ({ tenant }) => utcTime(tenant.createdAt.getTime(), 'day'),
          },
        ],
        rows,
        rowTone: (row) => ((row.balanceQuanta ?? 0) < 0 ? 'warn' : undefined),
        pages: pagesOf(options),
        empty: emptyOf(options),
      }),
    ],
  );
}

function emptyOf({ staff, all }: CustomersPageOptions) {
  if (all.length > 0)
    return { title: 'No customer matches', text: 'Names, organizations and ids are searched.' };
  const text = 'A customer is an organization with an owner who signs in, and a workspace that is invoiced.';
  const action = { label: 'Create the first customer', href: `${path}new` };
  return { title: 'No customers yet', text, ...(staff.canChange ? { action } : {}) };
}

function pagesOf({ rows, fittingCount, filter, page, hasMore }: CustomersPageOptions) {
  const here = withQuery(path, { text: filter.text || undefined, status: filter.status || undefined });
  return {
    label: `${formatCount(rows.length)} of ${formatCount(fittingCount)}`,
    previousHref: page > 1 ? withQuery(here, { page: page === 2 ? undefined : page - 1 }) : undefined,
    nextHref: hasMore ? withQuery(here, { page: page + 1 }) : undefined,
  };
}

function stateOf(rows: readonly CustomerRow[]): { tone: Tone; text: string } {
  if (rows.length === 0) return { tone: 'neutral', text: 'No customers yet.' };
  const all = rows.length === 1 ? 'One customer' : `${formatCount(rows.length)} customers`;
  const suspended = rows.filter((row) => row.tenant.status === 'SUSPENDED').length;
  const inDebt = rows.filter((row) => (row.balanceQuanta ?? 0) < 0).length;
  if (suspended + inDebt === 0) return { tone: 'good', text: `${all}, none suspended, none in debt.` };
  return {
    tone: 'warn',
    text: `${all}, ${suspended === 0 ? 'none' : formatCount(suspended)} suspended, ${inDebt === 0 ? 'none' : formatCount(inDebt)} in debt.`,
  };
}
