/** `/console/staff/`: who works here and what they may do. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts, StaffActor } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { type StaffPageOptions, staffPage } from './staff.page.ts';

export interface StaffDeps {
  accounts: Accounts;
}

const CreateForm = Type.Object({
  email: Type.String({ maxLength: 320 }),
  name: Type.String({ maxLength: 200 }),
  role: Type.Union([Type.Literal('operator'), Type.Literal('support')]),
});
const person = Type.String({ pattern: '^[1-9][0-9]{0,14}$' });
const ActiveForm = Type.Object({ person, active: Type.Union([Type.Literal('yes'), Type.Literal('no')]) });
const LinkForm = Type.Object({ person });
const Query = Type.Object({ done: Type.Optional(Type.String()) });

const outcomes: Readonly<Record<string, string>> = {
  factors: 'Their second factors are removed and their sessions ended.',
  let_in: 'They may sign in again.',
  kept_out: 'Signed out. Activate to restore access.',
};

export function registerStaff(app: App, deps: StaffDeps): void {
  app.get('/staff/', { schema: { querystring: Query } }, async (request, reply) => {
    const text = outcomes[request.query.done ?? ''];
    return show(deps, request, reply, text === undefined ? {} : { toast: { tone: 'good', text } });
  });

  app.post('/staff/', { schema: { body: CreateForm } }, async (request, reply) => {
    try {
      const { delivery } = await deps.accounts.inviteStaff(request.staff!.actor, request.body);
      return show(deps, request, reply, { delivery });
    } catch (error) {
      return refuse(deps, request, reply, error, request.body);
    }
  });

  app.post('/staff/active', { schema: { body: ActiveForm } }, async (request, reply) => {
    const { actor } = request.staff!;
    const isActive = request.body.active === 'yes';
    const personId = await findColleague(deps, actor, request.body.person);
    if (personId === actor.personId) {
      const error = 'You cannot deactivate yourself. Ask another operator.';
      return show(deps, request, reply, { error }, 422);
    }
    await deps.accounts.setPersonActive(actor, personId, isActive);
    return back(reply, isActive ? 'let_in' : 'kept_out');
  });

  app.post('/staff/factors', { schema: { body: LinkForm } }, async (request, reply) => {
    const { actor } = request.staff!;
    const personId = await findColleague(deps, actor, request.body.person);
    if (personId === actor.personId) {
      const error = 'Change your own second factors on the page of your account.';
      return show(deps, request, reply, { error }, 422);
    }
    await deps.accounts.removeSecondFactors(actor, personId);
    return back(reply, 'factors');
  });

  // Answered here instead of redirected to: without a mail server this answer alone holds the link.
  app.post('/staff/link', { schema: { body: LinkForm } }, async (request, reply) => {
    const { actor } = request.staff!;
    const personId = await findColleague(deps, actor, request.body.person);
    try {
      return show(deps, request, reply, { delivery: await deps.accounts.sendAccessLink(actor, personId) });
    } catch (error) {
      return refuse(deps, request, reply, error);
    }
  });
}

const back = (reply: FastifyReply, done: string) => reply.redirect(`/console/staff/?done=${done}`, 303);

/** One of our own people: customers are changed on their own pages. */
async function findColleague(deps: StaffDeps, actor: StaffActor, given: string): Promise<number> {
  const people = await deps.accounts.listStaff(actor);
  const found = people.find((each) => each.id === Number(given));
  if (!found) throw noSuchPage();
  return found.id;
}

function refuse(
  deps: StaffDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
  given?: StaffPageOptions['given'],
): Promise<FastifyReply> {
  if (!(error instanceof CodedError) || error.code === 'accounts.forbidden') throw error;
  return show(deps, request, reply, { error: error.message, ...(given ? { given } : {}) }, 422);
}

async function show(
  deps: StaffDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  said: Pick<StaffPageOptions, 'toast' | 'error' | 'given' | 'delivery'>,
  status = 200,
): Promise<FastifyReply> {
  const staff = request.staff!;
  const people = await deps.accounts.listStaff(staff.actor);
  return sendPage(reply, staffPage({ staff, people, ...said }), status);
}
