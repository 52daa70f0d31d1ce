/** One customer, found and shown: what the pages and the forms of a customer have in common. */
import { randomUUID } from 'node:crypto';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import type { Accounts, Actor, Tenant } from '#operations/accounts/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import type { ProtectTraffic } from '#operations/protect/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { Delivery } from '#service-kit/mail/index.ts';
import { sendPage, type Tone } from '#service-kit/pages/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { readMonitorLink } from '../monitor-link.ts';
import { customerPage } from './customer.page.ts';

export interface CustomersDeps {
  accounts: Accounts;
  apiKeys: ApiKeys;
  billing: Billing;
  payments: Payments;
  protectTraffic: ProtectTraffic;
  servers: Servers;
  sessions: Sessions;
  signOn: SignOn<Actor>;
  clock: Clock;
}

export const CustomerParams = Type.Object({ id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }) });
const rowsMax = 50;

export async function findCustomer(deps: CustomersDeps, id: string): Promise<Tenant> {
  const tenant = await deps.accounts.findTenant(Number(id));
  if (!tenant) throw noSuchPage();
  return tenant;
}

/** The customer's page, also as the answer to a refused form. */
export async function showCustomer(
  deps: CustomersDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  id: string,
  said: {
    toast?: { tone: Tone; text: string } | undefined;
    error?: string;
    closeError?: string;
    delivery?: Delivery;
  },
  status = 200,
): Promise<FastifyReply> {
  const staff = request.staff!;
  const tenant = await findCustomer(deps, id);
  const { actor } = staff;
  const newest = { order: 'newest', limit: rowsMax } as const;
  const [access, entries, days, charges, cards, members, servers, keys, profile, inMonitor] =
    await Promise.all([
      deps.billing.accessOf([tenant.id]),
      deps.billing.listEntries(actor, tenant.id, rowsMax),
      deps.billing.sumDays(actor, tenant.id, 30),
      deps.payments.listCharges(actor, tenant.id, rowsMax),
      deps.payments.listCards(actor, tenant.id),
      deps.accounts.membersOf(tenant.organizationId),
      deps.servers.listServers(actor, tenant.id, newest),
      deps.apiKeys.listKeysOf(actor, tenant.organizationId),
      deps.accounts.billingProfileOf(tenant.id),
      readMonitorLink(deps.signOn),
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
    formId: randomUUID(),
    inMonitor,
    nowMs: deps.clock.nowMs(),
    ...said,
  });
  return sendPage(reply, page, status);
}
