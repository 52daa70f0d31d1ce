/** `/client/developer/webhooks/`: endpoints of the organizations that the signed-in person owns. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Features } from '#operations/features.ts';
import type { Endpoint } from '#operations/webhooks/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { isConfirmed, sendPage, toastOf } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import {
  deliveryPage,
  type EndpointForm,
  type WebhookPageOptions,
  webhookPage,
  webhooksPage,
} from './webhooks.page.ts';

const deliveriesMax = 100;
const Id = Type.Object({ id: Type.String() });
const formFields = {
  url: Type.String({ maxLength: 1_000 }),
  description: Type.Optional(Type.String({ maxLength: 1_000 })),
  events: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String(), { maxItems: 100 })])),
};
const CreateForm = Type.Object({
  ...formFields,
  scope: Type.String({ pattern: '^(organization|tenant):\\d{1,15}$' }),
});
const ChangeForm = Type.Object(formFields);
const ReplayForm = Type.Object({ delivery: Type.String({ pattern: '^\\d{1,15}$' }) });

/** What the toast says after a redirect; the name in the URL chooses, its text never comes from there. */
const outcomes: Record<string, string> = {
  saved: 'Saved.',
  test: 'A test is on its way.',
  replay: 'It is being sent again.',
  enable: 'Enabled. New events are delivered from now on.',
  disable: 'Disabled. Pending deliveries are cancelled.',
};

export function registerWebhooks(app: App, deps: Features): void {
  app.get('/developer/webhooks/', (request, reply) => showList(deps, request, reply, 200, {}));

  app.post('/developer/webhooks/', { schema: { body: CreateForm } }, async (request, reply) => {
    const { actor } = request.visitor!;
    const input = readForm(request.body);
    const [kind, id] = request.body.scope.split(':') as [string, string];
    const tenant = kind === 'tenant' ? await deps.accounts.findTenant(Number(id)) : null;
    if (kind === 'tenant' && tenant === null) throw noSuchPage();
    const scope = { organizationId: tenant?.organizationId ?? Number(id), tenantId: tenant?.id ?? null };
    try {
      // The secret is in the answer to this very request: a redirect would have to keep it somewhere.
      const { endpointId, secret } = await deps.webhooks.createEndpoint(actor, { ...scope, ...input });
      return await showOne(deps, request, reply, await deps.webhooks.findEndpoint(actor, endpointId), {
        secret,
      });
    } catch (error) {
      return showList(deps, request, reply, 422, { error: refusalOf(error), form: input });
    }
  });

  app.get(
    '/developer/webhooks/:id',
    { schema: { params: Id, querystring: Type.Object({ done: Type.Optional(Type.String()) }) } },
    async (request, reply) => {
      const toast = toastOf(outcomes, request.query.done);
      return showOne(deps, request, reply, await find(deps, request), { toast });
    },
  );

  app.post(
    '/developer/webhooks/:id',
    { schema: { params: Id, body: ChangeForm } },
    async (request, reply) => {
      const endpoint = await find(deps, request);
      const input = readForm(request.body);
      try {
        await deps.webhooks.changeEndpoint(request.visitor!.actor, endpoint.id, input);
      } catch (error) {
        return showOne(deps, request, reply, endpoint, { error: refusalOf(error), form: input }, 422);
      }
      return reply.redirect(`/client/developer/webhooks/${endpoint.id}?done=saved`, 303);
    },
  );

  registerActions(app, deps);
  registerDeliveries(app, deps);
}

function registerActions(app: App, deps: Features): void {
  app.post('/developer/webhooks/:id/rotate', { schema: { params: Id } }, async (request, reply) => {
    const { id } = await find(deps, request);
    const secret = await deps.webhooks.rotateSecret(request.visitor!.actor, id);
    return showOne(deps, request, reply, await find(deps, request), { secret });
  });

  app.post('/developer/webhooks/:id/delete', { schema: { params: Id } }, async (request, reply) => {
    const endpoint = await find(deps, request);
    const { host } = new URL(endpoint.url);
    if (!isConfirmed(request.body, host)) {
      const confirmError = `Nothing was deleted: the name typed is not ${host}.`;
      return showOne(deps, request, reply, endpoint, { confirmError }, 422);
    }
    await deps.webhooks.deleteEndpoint(request.visitor!.actor, endpoint.id);
    return reply.redirect('/client/developer/webhooks/', 303);
  });

  for (const isEnabled of [true, false]) {
    const what = isEnabled ? 'enable' : 'disable';
    app.post(`/developer/webhooks/:id/${what}`, { schema: { params: Id } }, async (request, reply) => {
      const { id } = await find(deps, request);
      await deps.webhooks.setEnabled(request.visitor!.actor, id, isEnabled);
      return reply.redirect(`/client/developer/webhooks/${id}?done=${what}`, 303);
    });
  }
}

function registerDeliveries(app: App, deps: Features): void {
  app.post('/developer/webhooks/:id/test', { schema: { params: Id } }, async (request, reply) => {
    const { id } = await find(deps, request);
    await orConflict(() => deps.webhooks.sendTest(request.visitor!.actor, id));
    return reply.redirect(`/client/developer/webhooks/${id}?done=test`, 303);
  });

  app.post(
    '/developer/webhooks/:id/replay',
    { schema: { params: Id, body: ReplayForm } },
    async (request, reply) => {
      const { id } = await find(deps, request);
      const delivery = Number(request.body.delivery);
      const isSent = await orConflict(() =>
        deps.webhooks.replayDelivery(request.visitor!.actor, id, delivery),
      );
      if (!isSent) throw noSuchPage();
      return reply.redirect(`/client/developer/webhooks/${id}?done=replay`, 303);
    },
  );

  app.get(
    '/developer/webhooks/:id/deliveries/:delivery',
    { schema: { params: Type.Object({ id: Type.String(), delivery: Type.String() }) } },
    async (request, reply) => {
      const endpoint = await find(deps, request);
      if (!/^[1-9]\d{0,14}$/.test(request.params.delivery)) throw noSuchPage();
      const { actor } = request.visitor!;
      const found = await deps.webhooks.findDelivery(actor, endpoint.id, Number(request.params.delivery));
      if (found === null) throw noSuchPage();
      const options = { visitor: request.visitor!, endpoint, nowMs: deps.clock.nowMs() };
      return sendPage(reply, deliveryPage({ ...options, ...found }));
    },
  );
}

/** The endpoint of the path; the portal's 404 for any that is not one's own. */
async function find(deps: Features, request: FastifyRequest): Promise<Endpoint> {
  const { id } = request.params as { id: string };
  if (!/^[1-9]\d{0,14}$/.test(id)) throw noSuchPage();
  try {
    return await deps.webhooks.findEndpoint(request.visitor!.actor, Number(id));
  } catch (error) {
    if (error instanceof CodedError && error.code === 'webhooks.not_found') throw noSuchPage();
    throw error;
  }
}

function readForm(body: { url: string; description?: string; events?: string | string[] }): EndpointForm {
  return { url: body.url, description: body.description ?? '', eventTypes: [body.events ?? []].flat() };
}

/** The sentence of a refusal; anything else is thrown on. */
function refusalOf(error: unknown): string {
  if (error instanceof CodedError && ['webhooks.invalid', 'webhooks.limit'].includes(error.code))
    return error.message;
  throw error;
}

async function orConflict<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CodedError && error.code === 'webhooks.test_rate')
      throw new HttpError(429, { code: 'rate_limited', reason: 'test_rate', message: error.message });
    if (!(error instanceof CodedError) || error.code !== 'webhooks.disabled') throw error;
    throw new HttpError(409, { code: 'conflict', message: error.message });
  }
}

async function showList(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  status: number,
  state: { error?: string; form?: EndpointForm },
): Promise<FastifyReply> {
  const visitor = request.visitor!;
  const [endpoints, memberships, tenants] = await Promise.all([
    deps.webhooks.listEndpoints(visitor.actor),
    deps.accounts.membershipsOf(visitor.actor.personId),
    deps.accounts.findTenants(visitor.actor.tenantIds),
  ]);
  const organizations = memberships.filter((one) => one.role === 'owner');
  const page = { visitor, endpoints, organizations, tenants, nowMs: deps.clock.nowMs(), ...state };
  return sendPage(reply, webhooksPage(page), status);
}

async function showOne(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  endpoint: Endpoint,
  state: Partial<WebhookPageOptions>,
  status = 200,
): Promise<FastifyReply> {
  const visitor = request.visitor!;
  const deliveries = await deps.webhooks.listDeliveries(visitor.actor, endpoint.id, deliveriesMax);
  const options = { visitor, endpoint, deliveries, nowMs: deps.clock.nowMs() };
  return sendPage(reply, webhookPage({ ...options, ...state }), status);
}
