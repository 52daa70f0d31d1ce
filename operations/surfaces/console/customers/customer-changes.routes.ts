/** What operators do to a customer's account and its people. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Membership } from '#operations/accounts/index.ts';
import { parseMoney } from '#operations/billing/index.ts';
import type { Features } from '#operations/features.ts';
import type { TenantStatus } from '#operations/views/tenant-store.ts';
import type { App } from '#service-kit/http/index.ts';
import { isConfirmed } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { CustomerParams, findCustomer, showCustomer } from './customer.page.ts';

const CreditForm = Type.Object({
  amount: Type.String({ maxLength: 20 }),
  reference: Type.String({ maxLength: 100 }),
});
const AdjustForm = Type.Object({
  amount: Type.String({ maxLength: 20 }),
  reason: Type.String({ maxLength: 200 }),
  form_id: Type.String({ minLength: 8, maxLength: 40 }),
});
const StatusForm = Type.Object({ status: Type.Union([Type.Literal('ACTIVE'), Type.Literal('SUSPENDED')]) });
const person = Type.String({ pattern: '^[1-9][0-9]{0,14}$' });
const ActiveForm = Type.Object({ person, active: Type.Union([Type.Literal('yes'), Type.Literal('no')]) });
const LinkForm = Type.Object({ person });

export function registerCustomerChanges(app: App, deps: Features): void {
  registerMoney(app, deps);
  registerStatus(app, deps);
  registerMembers(app, deps);
}

function registerMoney(app: App, deps: Features): void {
  app.post(
    '/customers/:id/credit',
    { schema: { params: CustomerParams, body: CreditForm } },
    async (request, reply) => {
      const { id } = request.params;
      const { amount, reference } = request.body;
      const tenant = await findCustomer(deps, id);
      const amountQuanta = parseMoney(amount) ?? 0;
      const name = reference.trim();
      if (amountQuanta === 0 || name === '') {
        const error = 'Give an amount such as 25.00 and a reference that names the payment.';
        return showCustomer(deps, request, reply, id, { error }, 422);
      }
      const isNew = await deps.billing.addDeposit(request.staff!.actor, tenant.id, {
        amountQuanta,
        reference: name,
        description: `Deposit ${name}`,
      });
      return back(reply, id, isNew ? 'credit' : 'known');
    },
  );

  app.post(
    '/customers/:id/adjust',
    { schema: { params: CustomerParams, body: AdjustForm } },
    async (request, reply) => {
      const { id } = request.params;
      const { amount, reason, form_id: formId } = request.body;
      const tenant = await findCustomer(deps, id);
      const amountQuanta = parseSigned(amount);
      if (amountQuanta === 0 || reason.trim() === '') {
        const error = 'Give an amount such as 5.00 or -5.00, and the reason for it.';
        return showCustomer(deps, request, reply, id, { error }, 422);
      }
      const adjustment = { amountQuanta, reason, formId };
      const isNew = await deps.billing.adjustCredit(request.staff!.actor, tenant.id, adjustment);
      return back(reply, id, isNew ? 'adjusted' : 'known');
    },
  );
}

function registerStatus(app: App, deps: Features): void {
  app.post(
    '/customers/:id/status',
    { schema: { params: CustomerParams, body: StatusForm } },
    (request, reply) => setStatus(deps, request, reply, request.params.id, request.body.status),
  );

  app.post('/customers/:id/close', { schema: { params: CustomerParams } }, async (request, reply) => {
    const { id } = request.params;
    const tenant = await findCustomer(deps, id);
    if (!isConfirmed(request.body, tenant.name))
      return showCustomer(deps, request, reply, id, { closeError: 'Type the name of the account.' }, 422);
    return setStatus(deps, request, reply, id, 'CLOSED');
  });
}

function registerMembers(app: App, deps: Features): void {
  app.post(
    '/customers/:id/members/active',
    { schema: { params: CustomerParams, body: ActiveForm } },
    async (request, reply) => {
      const { id } = request.params;
      const isActive = request.body.active === 'yes';
      const member = await findMember(deps, id, request.body.person);
      await deps.accounts.setPersonActive(request.staff!.actor, member.personId, isActive);
      return back(reply, id, isActive ? 'let_in' : 'kept_out');
    },
  );

  app.post(
    '/customers/:id/members/factors',
    { schema: { params: CustomerParams, body: LinkForm } },
    async (request, reply) => {
      const { id } = request.params;
      const member = await findMember(deps, id, request.body.person);
      await deps.accounts.removeSecondFactors(request.staff!.actor, member.personId);
      return back(reply, id, 'factors');
    },
  );

  // Answered here instead of redirected to: without a mail server this answer alone holds the link.
  app.post(
    '/customers/:id/members/link',
    { schema: { params: CustomerParams, body: LinkForm } },
    async (request, reply) => {
      const { id } = request.params;
      const member = await findMember(deps, id, request.body.person);
      try {
        const delivery = await deps.accounts.sendAccessLink(request.staff!.actor, member.personId);
        return showCustomer(deps, request, reply, id, { delivery });
      } catch (error) {
        return refuse(deps, request, reply, id, error);
      }
    },
  );
}

/** A member who is not staff: staff are changed on their own page, which prevents self-lockout. */
async function findMember(deps: Features, id: string, personId: string): Promise<Membership> {
  const tenant = await findCustomer(deps, id);
  const members = await deps.accounts.membersOf(tenant.organizationId);
  const member = members.find((each) => each.personId === Number(personId));
  if (!member || (await deps.accounts.findPerson(member.personId))?.staffRole !== null) throw noSuchPage();
  return member;
}

async function setStatus(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  id: string,
  status: TenantStatus,
): Promise<FastifyReply> {
  const tenant = await findCustomer(deps, id);
  try {
    await deps.accounts.setTenantStatus(request.staff!.actor, tenant.id, status);
    return back(reply, id, status);
  } catch (error) {
    return refuse(deps, request, reply, id, error);
  }
}

function refuse(deps: Features, request: FastifyRequest, reply: FastifyReply, id: string, error: unknown) {
  if (!(error instanceof CodedError) || error.code !== 'accounts.invalid') throw error;
  return showCustomer(deps, request, reply, id, { error: error.message }, 422);
}

function back(reply: FastifyReply, id: string, done: string): FastifyReply {
  return reply.redirect(`/console/customers/${id}?done=${done}`, 303);
}

/** `5`, `+5.00`, `-5.00` and `−5.00`; 0 for what is no amount. */
function parseSigned(text: string): number {
  const match = /^([+\-\u2212]?)(.*)$/.exec(text.trim())!;
  const size = parseMoney(match[2]!) ?? 0;
  return match[1] === '' || match[1] === '+' ? size : -size;
}
