/** `/settings`: who may change people with access and their roles, and the request for the page. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { type Html, toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { peoplePage, type ShownAnswer } from './people.page.ts';
import { processingSection } from './processing-section.ts';

interface Shown extends ShownAnswer {
  toast?: Html;
}

const Params = Type.Object({ operatorId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
const Role = Type.Union([Type.Literal('operator'), Type.Literal('viewer')]);
const Person = Type.Object({
  email: Type.String({ maxLength: 320 }),
  name: Type.Optional(Type.String({ maxLength: 200 })),
  role: Role,
});
const Change = Type.Object({ role: Type.Optional(Role), access: Type.Optional(Type.String()) });

export function registerPeople(app: App, deps: ConsoleDeps): void {
  app.get(
    '/settings',
    { schema: { querystring: Type.Object({ saved: Type.Optional(Type.String()) }) } },
    async (request, reply) =>
      showPeople(deps, request, reply, request.query.saved ? { toast: toast('good', 'Saved.') } : {}),
  );

  app.post('/settings/people', { schema: { body: Person } }, async (request, reply) => {
    const { email, name = '', role } = request.body;
    try {
      const invited = await deps.operators.invite(viewerOf(request).actor, { email, name, role });
      // Rendered here instead of a redirect: without a mail server only this answer contains the link.
      return await showPeople(deps, request, reply, { invited });
    } catch (error) {
      const fault = faultText(error, 'operators.invalid', 'operators.email_taken');
      return showPeople(deps, request, reply, { invite: { email, name, role, fault } });
    }
  });

  app.post('/settings/people/:operatorId', { schema: { params: Params, body: Change } }, (request, reply) =>
    changePerson(deps, request, reply, request.params.operatorId, request.body),
  );

  app.post('/settings/people/:operatorId/factors', { schema: { params: Params } }, (request, reply) =>
    removeFactors(deps, request, reply, request.params.operatorId),
  );

  app.post('/settings/people/:operatorId/link', { schema: { params: Params } }, async (request, reply) => {
    try {
      const { actor } = viewerOf(request);
      const invited = await deps.operators.sendAccessLink(actor, request.params.operatorId);
      if (!invited) throw unknownPerson();
      return await showPeople(deps, request, reply, { invited });
    } catch (error) {
      if (error instanceof HttpError) throw error;
      return showPeople(deps, request, reply, { fault: faultText(error, 'operators.own') });
    }
  });
}

/** For a person who lost every second factor. */
async function removeFactors(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  operatorId: number,
) {
  try {
    const removed = await deps.operators.removeSecondFactors(viewerOf(request).actor, operatorId);
    if (!removed) throw unknownPerson();
  } catch (error) {
    if (error instanceof HttpError) throw error;
    return showPeople(deps, request, reply, { fault: faultText(error, 'operators.own') });
  }
  return reply.redirect('/settings?saved=1', 303);
}

async function changePerson(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  operatorId: number,
  { role, access }: Static<typeof Change>,
) {
  const change = {
    ...(role ? { role } : {}),
    ...(access ? { isDisabled: access === 'ended' } : {}),
  };
  try {
    if (!(await deps.operators.change(viewerOf(request).actor, operatorId, change))) throw unknownPerson();
  } catch (error) {
    if (error instanceof HttpError) throw error;
    return showPeople(deps, request, reply, { fault: faultText(error, 'operators.own', 'operators.last') });
  }
  return reply.redirect('/settings?saved=1', 303);
}

function unknownPerson(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'This person does not exist.' });
}

async function showPeople(deps: ConsoleDeps, request: FastifyRequest, reply: FastifyReply, shown: Shown) {
  const known = { people: await deps.operators.list(), shown, viewer: viewerOf(request), nowMs: Date.now() };
  const content = [peoplePage(request, known), processingSection(request, deps)];
  const isRefused = shown.invite ?? shown.fault;
  return sendConsolePage(
    request,
    reply,
    {
      title: 'Settings',
      status: isRefused === undefined ? 200 : 422,
      ...(shown.toast ? { toast: shown.toast } : {}),
    },
    content,
  );
}
