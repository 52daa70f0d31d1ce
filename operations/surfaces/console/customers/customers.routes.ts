/** `/console/customers/`: all customers, a new one, and the page and ledger of one. */
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Tenant } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  type Column,
  cellColumn,
  chosenOf,
  code,
  codeColumn,
  formatCount,
  formatMoneyAbout,
  type Html,
  inputForm,
  link,
  pageHeader,
  sendPage,
  type Tone,
  utcTime,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  type ListFilter,
  type ListValues,
  noSuchPage,
  readList,
} from '#service-kit/web/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { sendListPage } from '../list-page.ts';
import { customerTrafficColumns, type ListTraffic, readListTraffic } from '../traffic-columns.ts';
import { CustomerParams, findCustomer, showCustomer, showLedger } from './customer.page.ts';

const DetailQuery = Type.Object({ done: Type.Optional(Type.String()) });
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

const path = '/console/customers/';
const filters: readonly ListFilter[] = [
  { kind: 'search', name: 'text', label: 'Name, organization or id' },
  {
    ...{ name: 'status', label: 'Status', any: 'All' },
    options: [
      { value: 'ACTIVE', label: 'Active' },
      { value: 'SUSPENDED', label: 'Suspended' },
      { value: 'CLOSED', label: 'Closed' },
      { value: 'debt', label: 'In debt' },
    ],
  },
];

export function registerCustomers(app: App, deps: Features): void {
  app.get('/customers/', async (request, reply) => {
    const staff = request.staff!;
    const all = await readRows(deps, await deps.accounts.listTenants(staff.actor));
    const list = await readList(request, {
      ...{ id: 'customers', caption: 'Customers', path, filters },
      card: { line: ['status', 'servers', 'credit'] },
      read: async (values, { skip, limit }) =>
        all.filter((row) => fits(row, values)).slice(skip, skip + limit),
      count: async (values) => all.filter((row) => fits(row, values)).length,
      columns: async (rows) => {
        const tenantIds = rows.map((row) => row.tenant.id);
        const nowMs = deps.clock.nowMs();
        return columnsOf(await readListTraffic(deps.protectTraffic, staff.actor, { tenantIds }, nowMs));
      },
      rowTone: (row) => ((row.balanceQuanta ?? 0) < 0 ? 'warn' : undefined),
      empty: {
        title: 'No customers yet',
        text: 'A customer is an organization with an owner who signs in, and a workspace that is invoiced.',
        ...(staff.canChange && { action: { label: 'Create the first customer', href: `${path}new` } }),
      },
      noMatch: { title: 'No customer matches', text: 'Names, organizations and ids are searched.' },
    });
    const actions = staff.canChange && link(`${path}new`, 'New customer', { kind: 'primary' });
    return sendListPage(
      request,
      reply,
      { title: 'Customers', current: 'customers', state: stateOf(all), actions },
      list.table,
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
      return showCustomer(deps, request, reply, request.params.id, { toast: chosenOf(outcomes, done) });
    },
  );

  app.get('/customers/:id/ledger', { schema: { params: CustomerParams } }, async (request, reply) =>
    showLedger(deps, request, reply, await findCustomer(deps, request.params.id)),
  );
}

async function readRows(deps: Features, tenants: readonly Tenant[]) {
  const ids = tenants.map((tenant) => tenant.id);
  const [counts, access] = await Promise.all([deps.servers.countOfTenants(ids), deps.billing.accessOf(ids)]);
  return tenants.map((tenant) => ({
    tenant,
    serverCount: counts.get(tenant.id) ?? 0,
    balanceQuanta: access.get(tenant.id)?.balanceQuanta ?? null,
  }));
}

function fits({ tenant, balanceQuanta }: CustomerRow, { text, status }: ListValues): boolean {
  const wanted = text?.toLowerCase() ?? '';
  const isNamed =
    wanted === '' ||
    String(tenant.id) === wanted ||
    [tenant.name, tenant.organizationName, tenant.slug].some((name) => name.toLowerCase().includes(wanted));
  return (
    isNamed && (status === 'debt' ? (balanceQuanta ?? 0) < 0 : (status ?? tenant.status) === tenant.status)
  );
}

type CustomerRow = Awaited<ReturnType<typeof readRows>>[number];

const statusTones: Record<Tenant['status'], Tone> = { ACTIVE: 'good', SUSPENDED: 'warn', CLOSED: 'neutral' };

function columnsOf(traffic: ListTraffic): Column<CustomerRow>[] {
  return [
    cellColumn('name', 'Customer', ({ tenant }) => link(`/console/customers/${tenant.id}`, tenant.name)),
    cellColumn('organization', 'Organization', ({ tenant }) =>
      tenant.organizationName === tenant.name ? '' : tenant.organizationName,
    ),
    codeColumn('id', 'Id', ({ tenant }) => code(String(tenant.id))),
    cellColumn('status', 'Status', ({ tenant }) => [
      badge(statusTones[tenant.status], tenant.status.toLowerCase()),
      !tenant.hasBillingProfile && [' ', badge('warn', 'no billing profile')],
    ]),
    countColumn('servers', 'Servers', (row) => row.serverCount),
    ...customerTrafficColumns<CustomerRow>(traffic, (row) => row.tenant.id),
    {
      ...{ key: 'credit', header: 'Credit', kind: 'figure', field: 'credit_quanta' },
      cell: (row) => formatMoneyAbout(row.balanceQuanta, row.tenant.currency),
      value: (row) => row.balanceQuanta,
    },
    cellColumn('created', 'Since', ({ tenant }) => utcTime(tenant.createdAt.getTime(), 'day')),
  ];
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

interface NewCustomerOptions {
  staff: Staff;
  given?: { organization: string; name: string; email: string };
  fault?: { field: string; message: string } | undefined;
}

/** `/console/customers/new`: an organization with its owner, who sets a password by a link. */
function newCustomerPage({ staff, given, fault }: NewCustomerOptions): Html {
  return consoleFrame({ staff, title: 'New customer', current: 'customers' }, [
    pageHeader({
      title: 'New customer',
      state: {
        tone: 'info',
        text: 'The owner sets a password, adds a billing profile, and pays or gets credit. Then servers can be deployed.',
      },
    }),
    inputForm(
      {
        action: '/console/customers/',
        csrfToken: staff.csrfToken,
        submit: 'Create customer',
        cancel: link('/console/customers/', 'Cancel', { kind: 'button' }),
      },
      [
        { name: 'organization', label: 'Organization', required: true, maxLength: 120 },
        {
          kind: 'email',
          name: 'email',
          label: 'Owner’s email address',
          hint: 'We email a link to set a password. A person who already has an account keeps their name and password.',
          required: true,
          maxLength: 254,
          autocomplete: 'off',
        },
        { name: 'name', label: 'Name of its owner', maxLength: 120, autocomplete: 'off' },
      ],
      { typed: given, fault },
    ),
  ]);
}
