/** `/console/` and `/console/customers/{id}`: customers, and what operators may do to their accounts. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts, Tenant, TenantStatus } from '#operations/accounts/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import { type Billing, parseMoney } from '#operations/billing/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { isConfirmed, sendPage, type Tone } from '#service-kit/pages/index.ts';
import { customerPage } from './customer.page.ts';
import { type CustomerRow, type CustomersFilter, customersPage } from './customers.page.ts';
import { noSuchPage } from './guard.ts';

export interface CustomersDeps {
  accounts: Accounts;
  apiKeys: ApiKeys;
  billing: Billing;
  payments: Payments;
  servers: Servers;
  clock: Clock;
}

const Params = Type.Object({ id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) });
const ListQuery = Type.Object({
  text: Type.Optional(Type.String({ maxLength: 200 })),
  status: Type.Optional(Type.String({ maxLength: 20 })),
});
const DetailQuery = Type.Object({ done: Type.Optional(Type.String()) });
const CreditForm = Type.Object({
  amount: Type.String({ maxLength: 20 }),
  reference: Type.String({ maxLength: 100 }),
});
const StatusForm = Type.Object({ status: Type.Union([Type.Literal('ACTIVE'), Type.Literal('SUSPENDED')]) });

const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  credit: { tone: 'good', text: 'The credit is booked.' },
  known: { tone: 'warn', text: 'This reference was booked before; nothing was booked again.' },
  ACTIVE: { tone: 'good', text: 'The account is active.' },
  SUSPENDED: { tone: 'good', text: 'The account is suspended.' },
  CLOSED: { tone: 'good', text: 'The account is closed.' },
};

const rowsMax = 50;

export function registerCustomers(app: App, deps: CustomersDeps): void {
  app.get('/', { schema: { querystring: ListQuery } }, async (request, reply) => {
    const staff = request.staff!;
    const filter = { text: request.query.text?.trim() ?? '', status: request.query.status ?? '' };
    const all = await readRows(deps, await deps.accounts.listTenants(staff.actor));
    const rows = all.filter((row) => fits(row, filter));
    return sendPage(reply, customersPage(staff, all, rows, filter));
  });

  app.get(
    '/customers/:id',
    { schema: { params: Params, querystring: DetailQuery } },
    async (request, reply) => {
      const { done } = request.query;
      return show(deps, request, reply, request.params.id, { toast: done ? outcomes[done] : undefined });
    },
  );

  app.post(
    '/customers/:id/credit',
    { schema: { params: Params, body: CreditForm } },
    async (request, reply) => {
      const { id } = request.params;
      const { amount, reference } = request.body;
      const tenant = await find(deps, id);
      const amountQuanta = parseMoney(amount) ?? 0;
      const name = reference.trim();
      if (amountQuanta === 0 || name === '') {
        const error = 'Give an amount such as 25.00 and a reference that names the payment.';
        return show(deps, request, reply, id, { error }, 422);
      }
      const isNew = await deps.billing.addDeposit(request.staff!.actor, tenant.id, {
        amountQuanta,
        reference: name,
        description: `Deposit ${name}`,
      });
      return back(reply, id, isNew ? 'credit' : 'known');
    },
  );

  app.post('/customers/:id/status', { schema: { params: Params, body: StatusForm } }, (request, reply) =>
    setStatus(deps, request, reply, request.params.id, request.body.status),
  );

  app.post('/customers/:id/close', { schema: { params: Params } }, async (request, reply) => {
    const { id } = request.params;
    const tenant = await find(deps, id);
    if (!isConfirmed(request.body, tenant.name))
      return show(deps, request, reply, id, { closeError: 'Type the name of the account.' }, 422);
    return setStatus(deps, request, reply, id, 'CLOSED');
  });
}

async function setStatus(
  deps: CustomersDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  id: string,
  status: TenantStatus,
): Promise<FastifyReply> {
  const tenant = await find(deps, id);
  try {
    await deps.accounts.setTenantStatus(request.staff!.actor, tenant.id, status);
    return back(reply, id, status);
  } catch (error) {
    if (!(error instanceof CodedError) || error.code !== 'accounts.invalid') throw error;
    return show(deps, request, reply, id, { error: error.message }, 422);
  }
}

function back(reply: FastifyReply, id: string, done: string): FastifyReply {
  return reply.redirect(`/console/customers/${id}?done=${done}`, 303);
}

async function find(deps: CustomersDeps, id: string): Promise<Tenant> {
  const tenant = await deps.accounts.findTenant(Number(id));
  if (!tenant) throw noSuchPage();
  return tenant;
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

async function show(
  deps: CustomersDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  id: string,
  said: { toast?: { tone: Tone; text: string } | undefined; error?: string; closeError?: string },
  status = 200,
): Promise<FastifyReply> {
  const staff = request.staff!;
  const tenant = await find(deps, id);
  const { actor } = staff;
  const newest = { order: 'newest', limit: rowsMax } as const;
  const [access, entries, days, charges, cards, members, servers, keys, profile] = await Promise.all([
    deps.billing.accessOf([tenant.id]),
    deps.billing.listEntries(actor, tenant.id, rowsMax),
    deps.billing.sumDays(actor, tenant.id, 30),
    deps.payments.listCharges(actor, tenant.id, rowsMax),
    deps.payments.listCards(actor, tenant.id),
    deps.accounts.membersOf(tenant.organizationId),
    deps.servers.listServers(actor, tenant.id, newest),
    deps.apiKeys.listKeysOf(actor, tenant.organizationId),
    deps.accounts.billingProfileOf(tenant.id),
  ]);
  const page = customerPage({
    staff,
    tenant,
    access: access.get(tenant.id)!,
    profile,
    entries,
    days,
    charges,
    cards,
    members,
    servers,
    keys,
    nowMs: deps.clock.nowMs(),
    ...said,
  });
  return sendPage(reply, page, status);
}
