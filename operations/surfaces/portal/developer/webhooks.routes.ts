/** `/client/developer/webhooks/`: endpoints of the organizations that the signed-in person owns. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { webhookEvents } from '#contracts/customer-api/index.ts';
import type { Membership, Tenant } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { Delivery } from '#operations/views/delivery-store.ts';
import type { Attempt, Endpoint } from '#operations/webhooks/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  actionButton,
  actionsColumn,
  age,
  badge,
  banner,
  type Content,
  cellColumn,
  codeBlock,
  confirm,
  definitionList,
  field,
  fieldGroup,
  form,
  formatCount,
  formatTime,
  type Html,
  hiddenField,
  html,
  isConfirmed,
  link,
  pageHeader,
  section,
  sendPage,
  shownOnce,
  type Tone,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { countColumn, linkColumn, noSuchPage, timeColumn } from '#service-kit/web/index.ts';
import { portalFrame } from '../frame.ts';
import { Done, Id, type Visitor } from '../guard.ts';
import { developerTabs } from './usage.routes.ts';

const deliveriesMax = 100;
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
    { schema: { params: Id, querystring: Done } },
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

/** What a refused form held. */
interface EndpointForm {
  url: string;
  description: string;
  eventTypes: readonly string[];
}

interface WebhooksPageOptions {
  visitor: Visitor;
  /** Those whose owner the visitor is. */
  organizations: readonly Membership[];
  tenants: readonly Tenant[];
  endpoints: readonly Endpoint[];
  nowMs: number;
  error?: string;
  form?: EndpointForm;
}

function webhooksPage(options: WebhooksPageOptions): Html {
  const { visitor, organizations, endpoints } = options;
  return portalFrame({ visitor, title: 'Webhooks', current: 'developer' }, [
    pageHeader({
      title: 'Webhooks',
      state: stateOf(endpoints),
      actions: link('/client/developer/docs/#webhooks', 'Verify signatures', { kind: 'button' }),
    }),
    developerTabs('webhooks'),
    organizations.length === 0
      ? banner({
          tone: 'info',
          title: 'Only the owner of the organization sets up webhooks',
          text: 'Ask the owner to add an endpoint.',
        })
      : [endpointTable(options), createSection(options)],
  ]);
}

function stateOf(endpoints: readonly Endpoint[]): { tone: Tone; text: string } {
  if (endpoints.length === 0) return { tone: 'neutral', text: 'No endpoints. No events are delivered.' };
  const disabled = endpoints.filter((one) => one.disabledAt !== null).length;
  const failing = endpoints.filter((one) => one.disabledAt === null && one.failingSince !== null).length;
  if (failing > 0)
    return { tone: 'bad', text: `Deliveries are failing for ${failing} of ${endpoints.length} endpoints.` };
  if (disabled > 0)
    return { tone: 'warn', text: `${disabled} of ${endpoints.length} endpoints are disabled.` };
  const count = endpoints.length === 1 ? 'One endpoint is' : `${endpoints.length} endpoints are`;
  return { tone: 'good', text: `${count} delivering, none failing.` };
}

/** One word about an endpoint. */
function endpointBadge(endpoint: Endpoint): Html {
  if (endpoint.disabledReason === 'gone') return badge('warn', 'disabled: it answered 410');
  if (endpoint.disabledAt !== null) return badge('neutral', 'disabled');
  return endpoint.failingSince === null ? badge('good', 'active') : badge('bad', 'failing');
}

function endpointTable({ endpoints, tenants, nowMs }: WebhooksPageOptions): Html {
  const nameOf = (tenantId: number | null) =>
    tenantId === null ? 'all' : (tenants.find((one) => one.id === tenantId)?.name ?? 'unknown');
  return table<Endpoint>({
    caption: 'Endpoints',
    card: { line: ['state', 'created'] },
    columns: [
      linkColumn('url', 'Address', (row) => [row.url, `/client/developer/webhooks/${row.id}`], {
        kind: 'code',
      }),
      cellColumn('state', 'State', endpointBadge),
      { key: 'events', header: 'Events', kind: 'figure', cell: (row) => String(row.eventTypes.length) },
      cellColumn('workspace', 'Workspace', (row) => nameOf(row.tenantId)),
      cellColumn('what', 'Description', (row) => row.description),
      cellColumn('created', 'Created', (row) => age(row.createdAt.getTime(), nowMs)),
    ],
    rows: endpoints,
    empty: {
      title: 'No endpoints yet',
      text: 'Enter your endpoint URL. We send it an event when a server is ready, a network is synced or a key is created.',
    },
  });
}

function createSection(options: WebhooksPageOptions): Html {
  const { visitor, organizations, tenants, error } = options;
  const owned = tenants.filter((tenant) =>
    organizations.some((one) => one.organizationId === tenant.organizationId),
  );
  // One field for both: an organization stands for all of its workspaces.
  const scopes = organizations.flatMap((one) => [
    { value: `organization:${one.organizationId}`, label: `All of ${one.organizationName}` },
    ...owned
      .filter((tenant) => tenant.organizationId === one.organizationId)
      .map((tenant) => ({ value: `tenant:${tenant.id}`, label: tenant.name })),
  ]);
  return section(
    { title: 'Add an endpoint', id: 'create' },
    form(
      { action: '/client/developer/webhooks/', csrfToken: visitor.csrfToken, submit: 'Add endpoint', error },
      [
        scopes.length === 2
          ? hiddenField('scope', scopes[0]!.value)
          : field({
              kind: 'select',
              name: 'scope',
              label: 'Workspaces',
              value: scopes[0]!.value,
              options: scopes,
            }),
        endpointFields(options.form),
      ],
    ),
  );
}

/** The fields of a new endpoint and of one that is changed. */
function endpointFields(given: EndpointForm | undefined): Content {
  const chosen = given?.eventTypes ?? webhookEvents.map((event) => event.type);
  return [
    field({
      kind: 'url',
      name: 'url',
      label: 'Address',
      hint: 'HTTPS URL that receives our POST requests.',
      required: true,
      maxLength: 500,
      value: given?.url ?? '',
      placeholder: 'https://example.com/webhooks',
      autocomplete: 'off',
      isCode: true,
    }),
    field({ name: 'description', label: 'Description', maxLength: 200, value: given?.description ?? '' }),
    fieldGroup(
      { legend: 'Events' },
      webhookEvents.map((event) =>
        field({
          kind: 'checkbox',
          id: `event-${event.type.replaceAll(/[._]/g, '-')}`,
          name: 'events',
          label: event.type,
          hint: event.summary,
          value: event.type,
          checked: (chosen as readonly string[]).includes(event.type),
        }),
      ),
    ),
  ];
}

interface WebhookPageOptions {
  visitor: Visitor;
  endpoint: Endpoint;
  deliveries: readonly Delivery[];
  nowMs: number;
  /** A secret that was made by this very request. */
  secret?: string;
  toast?: { tone: Tone; text: string } | undefined;
  error?: string;
  form?: EndpointForm;
  confirmError?: string;
}

/** One endpoint: what it is told, what became of it, and everything that can be done about it. */
function webhookPage(options: WebhookPageOptions): Html {
  const { visitor, endpoint, nowMs, secret } = options;
  const path = `/client/developer/webhooks/${endpoint.id}`;
  const act = (what: string, label: string, fields: Record<string, string> = {}) =>
    actionButton({ action: `${path}/${what}`, csrfToken: visitor.csrfToken, label, fields });
  const isDisabled = endpoint.disabledAt !== null;
  return portalFrame(
    {
      visitor,
      title: endpoint.url,
      current: 'developer',
      breadcrumb: crumbs(new URL(endpoint.url).host),
      toast: options.toast,
    },
    [
      pageHeader({
        title: new URL(endpoint.url).host,
        state: endpointState(endpoint),
        actions: isDisabled
          ? act('enable', 'Enable')
          : [act('test', 'Send a test'), act('disable', 'Disable')],
      }),
      secret !== undefined &&
        shownOnce('Secret', secret, 'Your receiver needs it to verify the signature of deliveries.'),
      definitionList([
        { term: 'Address', value: html`<code>${endpoint.url}</code>` },
        { term: 'State', value: endpointBadge(endpoint) },
        { term: 'Description', value: endpoint.description === '' ? 'none' : endpoint.description },
        { term: 'Created', value: age(endpoint.createdAt.getTime(), nowMs) },
      ]),
      deliveryTable(options, path, isDisabled),
      section(
        { title: 'Edit endpoint' },
        form({ action: path, csrfToken: visitor.csrfToken, submit: 'Save', error: options.error }, [
          endpointFields(options.form ?? endpoint),
        ]),
      ),
      secretSection(endpoint, act),
      section(
        { title: 'Delete endpoint' },
        confirm({
          action: `${path}/delete`,
          csrfToken: visitor.csrfToken,
          name: new URL(endpoint.url).host,
          consequence: 'Nothing is sent there any more, and its log is gone.',
          submit: 'Delete endpoint',
          error: options.confirmError,
        }),
      ),
    ],
  );
}

const crumbs = (name: string) => [
  { label: 'API keys', href: '/client/developer/' },
  { label: 'Webhooks', href: '/client/developer/webhooks/' },
  { label: name },
];

function endpointState(endpoint: Endpoint): { tone: Tone; text: string } {
  if (endpoint.disabledReason === 'gone')
    return { tone: 'warn', text: 'Disabled, because it answered 410. Pending deliveries were cancelled.' };
  if (endpoint.disabledAt !== null) return { tone: 'neutral', text: 'Disabled: no deliveries.' };
  if (endpoint.failingSince === null) return { tone: 'good', text: 'Delivering.' };
  const since = formatTime(endpoint.failingSince.getTime());
  const failures = endpoint.consecutiveFailures;
  const times = failures === 1 ? 'one attempt' : `${formatCount(failures)} attempts in a row`;
  return { tone: 'bad', text: `Deliveries are failing since ${since}: ${times}. We retry for three days.` };
}

const statusTones: Record<Delivery['status'], Tone> = {
  pending: 'info',
  delivered: 'good',
  failed: 'bad',
  cancelled: 'neutral',
};

function deliveryTable(
  { deliveries, visitor, nowMs }: WebhookPageOptions,
  path: string,
  isDisabled: boolean,
): Html {
  return table<Delivery>({
    caption: 'Deliveries',
    card: { line: ['status', 'happened'] },
    captionVisible: true,
    columns: [
      linkColumn('type', 'Event', (row) => [row.type, `${path}/deliveries/${row.id}`], { kind: 'code' }),
      cellColumn('status', 'State', (row) => badge(statusTones[row.status], row.status)),
      cellColumn('happened', 'Happened', (row) => age(row.occurredAt.getTime(), nowMs)),
      countColumn('attempts', 'Attempts', (row) => row.attempts),
      cellColumn(
        'last',
        'Last answer',
        (row) => row.lastError ?? (row.lastStatusCode === null ? 'none yet' : String(row.lastStatusCode)),
      ),
      cellColumn('next', 'Next attempt', (row) =>
        row.status === 'pending' ? age(row.nextAttemptAt.getTime(), nowMs) : 'none',
      ),
      actionsColumn('again', (row) =>
        row.status === 'pending' || isDisabled
          ? ''
          : actionButton({
              action: `${path}/replay`,
              csrfToken: visitor.csrfToken,
              label: 'Send again',
              fields: { delivery: row.id },
            }),
      ),
    ],
    rows: deliveries,
    empty: {
      title: 'No deliveries yet',
      text: 'Each delivery appears here with the answer of your receiver. Send a test event to see one.',
    },
  });
}

function secretSection(endpoint: Endpoint, act: (what: string, label: string) => Html): Html {
  const until = endpoint.previousSecretUntil;
  return section(
    {
      title: 'Secret',
      description: 'Rotate it if it was exposed. The previous secret stays valid for 24 hours.',
      actions: act('rotate', 'Change the secret'),
    },
    until !== null &&
      banner({
        tone: 'info',
        title: `Two signatures until ${formatTime(until.getTime())}`,
        text: 'Deliveries are signed with the new and the previous secret, so you can switch without losing events.',
      }),
  );
}

function deliveryPage({
  visitor,
  endpoint,
  publicId,
  body,
  attempts,
  nowMs,
}: {
  visitor: Visitor;
  endpoint: Endpoint;
  publicId: string;
  body: object;
  attempts: readonly Attempt[];
  nowMs: number;
}): Html {
  const host = new URL(endpoint.url).host;
  const last = attempts[0];
  const state: { tone: Tone; text: Content } =
    last === undefined
      ? { tone: 'info', text: 'Not sent yet.' }
      : last.error === null
        ? { tone: 'good', text: html`Delivered ${age(last.at.getTime(), nowMs)}.` }
        : { tone: 'bad', text: html`Failed: ${last.error}, ${age(last.at.getTime(), nowMs)}.` };
  return portalFrame(
    {
      visitor,
      title: publicId,
      current: 'developer',
      breadcrumb: [
        ...crumbs(host).slice(0, 2),
        { label: host, href: `/client/developer/webhooks/${endpoint.id}` },
        { label: 'Delivery' },
      ],
    },
    [
      pageHeader({ title: 'Delivery', state }),
      definitionList([{ term: 'webhook-id', value: html`<code>${publicId}</code>` }]),
      codeBlock({ label: 'Body', code: JSON.stringify(body, null, 2) }),
      table<Attempt>({
        caption: 'Attempts',
        card: { line: ['status', 'at'] },
        captionVisible: true,
        columns: [
          cellColumn('number', 'Attempt', (row) => formatCount(row.number)),
          timeColumn('at', 'When', (row) => row.at.getTime(), { precision: 'seconds' }),
          countColumn('took', 'Took', (row) => row.durationMs, { unit: 'ms' }),
          {
            key: 'status',
            header: 'Answer',
            kind: 'figure',
            cell: (row) => (row.statusCode === null ? 'none' : String(row.statusCode)),
          },
          cellColumn('error', 'Error', (row) => row.error ?? 'it was taken'),
        ],
        rows: attempts,
        empty: { title: 'No attempt yet', text: 'The first attempt starts in a moment.' },
      }),
    ],
  );
}
