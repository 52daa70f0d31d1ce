/** `/settings`: who may change people with access and their roles, and the request for the page. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { Id } from '#contracts/scalars.ts';
import { live, type RunningFeed } from '#monitor/feeds/index.ts';
import type { Invited, ListedOperator } from '#monitor/operators/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  actionButton,
  askButton,
  badge,
  banner,
  type Content,
  code,
  definitionList,
  drawer,
  field,
  form,
  formatCount,
  formatDuration,
  type Html,
  html,
  isoTime,
  link,
  pageHeader,
  section,
  toast,
} from '#service-kit/pages/index.ts';
import { linkDelivery } from '#service-kit/sign-in/index.ts';
import {
  dataTable,
  momentColumn,
  passwordLinkButton,
  removeFactorsButton,
  textColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, notFound, sendConsolePage } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';

interface Shown extends ShownAnswer {
  toast?: Html;
}

const Params = Type.Object({ operatorId: Id });
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
      showPeople(deps, reply, request.query.saved ? { toast: toast('good', 'Saved.') } : {}),
  );

  app.post('/settings/people', { schema: { body: Person } }, async (request, reply) => {
    const { email, name = '', role } = request.body;
    try {
      const invited = await deps.operators.invite(viewerOf(request).actor, { email, name, role });
      // Rendered here instead of a redirect: without a mail server only this answer contains the link.
      return await showPeople(deps, reply, { invited });
    } catch (error) {
      const fault = faultText(error, 'operators.invalid', 'operators.email_taken');
      return showPeople(deps, reply, { invite: { email, name, role, fault } });
    }
  });

  app.post('/settings/people/:operatorId', { schema: { params: Params, body: Change } }, (request, reply) =>
    changePerson(deps, reply, request.params.operatorId, request.body),
  );

  app.post('/settings/people/:operatorId/factors', { schema: { params: Params } }, (request, reply) =>
    removeFactors(deps, reply, request.params.operatorId),
  );

  app.post('/settings/people/:operatorId/link', { schema: { params: Params } }, async (request, reply) => {
    try {
      const { actor } = viewerOf(request);
      const invited = await deps.operators.sendAccessLink(actor, request.params.operatorId);
      if (!invited) throw unknownPerson();
      return await showPeople(deps, reply, { invited });
    } catch (error) {
      if (error instanceof HttpError) throw error;
      return showPeople(deps, reply, { fault: faultText(error, 'operators.own') });
    }
  });
}

/** For a person who lost every second factor. */
async function removeFactors(deps: ConsoleDeps, reply: FastifyReply, operatorId: number) {
  const { request } = reply;
  try {
    const removed = await deps.operators.removeSecondFactors(viewerOf(request).actor, operatorId);
    if (!removed) throw unknownPerson();
  } catch (error) {
    if (error instanceof HttpError) throw error;
    return showPeople(deps, reply, { fault: faultText(error, 'operators.own') });
  }
  return reply.redirect('/settings?saved=1', 303);
}

async function changePerson(
  deps: ConsoleDeps,
  reply: FastifyReply,
  operatorId: number,
  { role, access }: Static<typeof Change>,
) {
  const { request } = reply;
  const change = { ...(role ? { role } : {}), ...(access ? { isDisabled: access === 'ended' } : {}) };
  try {
    if (!(await deps.operators.change(viewerOf(request).actor, operatorId, change))) throw unknownPerson();
  } catch (error) {
    if (error instanceof HttpError) throw error;
    return showPeople(deps, reply, { fault: faultText(error, 'operators.own', 'operators.last') });
  }
  return reply.redirect('/settings?saved=1', 303);
}

const unknownPerson = () => notFound('This person does not exist.');

async function showPeople(deps: ConsoleDeps, reply: FastifyReply, shown: Shown) {
  const { request } = reply;
  const known = { people: await deps.operators.list(), shown, viewer: viewerOf(request), nowMs: Date.now() };
  const content = [peoplePage(request, known), processingSection(request, deps)];
  const isRefused = shown.invite ?? shown.fault;
  return sendConsolePage(
    reply,
    {
      title: 'Settings',
      status: isRefused === undefined ? 200 : 422,
      ...(shown.toast ? { toast: shown.toast } : {}),
    },
    content,
  );
}

/** What the request before this page led to. */
interface ShownAnswer {
  /** Input of a refused form for a new person. */
  invite?: { email: string; name: string; role: string; fault: string };
  fault?: string;
  /** How the password link was delivered. */
  invited?: Invited;
}

interface PeoplePage {
  people: readonly ListedOperator[];
  shown: ShownAnswer;
  viewer: Viewer;
  nowMs: number;
}

/** The page of people with access, and their roles. */
function peoplePage(request: FastifyRequest, { people, shown, viewer, nowMs }: PeoplePage): Content {
  const able = people.filter((person) => person.disabledAtMs === null);
  const operators = able.filter((person) => person.role === 'operator').length;
  const invite = inviteForm(viewer.csrfToken, shown.invite);
  return [
    pageHeader({
      title: 'Settings',
      state: {
        tone: operators > 1 ? 'good' : 'info',
        text: `${formatCount(able.length)} ${able.length === 1 ? 'person' : 'people'} can sign in, ${formatCount(operators)} with write access.`,
      },
      actions: [
        link('/settings/sign-on/', 'Single sign-on', { kind: 'button' }),
        viewer.canChange &&
          drawer(
            { id: 'new-person', open: 'Add a person', title: 'Add a person', openKind: 'primary' },
            invite,
          ),
      ],
    }),
    shown.fault && banner({ tone: 'bad', title: 'Nothing was changed', text: shown.fault }),
    shown.invited && linkDelivery(shown.invited.delivery),
    shown.invite && section({ title: 'Add a person' }, invite),
    section(
      {
        title: 'People',
        id: 'people',
        description: 'An operator can change everything; a read-only person can only read.',
      },
      peopleTable(request, people, viewer, nowMs),
    ),
  ];
}

function inviteForm(csrfToken: string, refused: ShownAnswer['invite']) {
  const suffix = refused ? '-refused' : '';
  return form({ action: '/settings/people', csrfToken, submit: 'Add person' }, [
    field({
      id: `field-email${suffix}`,
      kind: 'email',
      name: 'email',
      label: 'Email address',
      required: true,
      value: refused?.email,
      error: refused?.fault,
    }),
    field({ id: `field-person${suffix}`, name: 'name', label: 'Name', value: refused?.name, maxLength: 80 }),
    field({
      id: `field-role${suffix}`,
      kind: 'select',
      name: 'role',
      label: 'Role',
      value: refused?.role ?? 'viewer',
      options: [
        { value: 'viewer', label: 'Read-only' },
        { value: 'operator', label: 'Operator' },
      ],
    }),
  ]);
}

function peopleTable(
  request: FastifyRequest,
  people: readonly ListedOperator[],
  viewer: Viewer,
  nowMs: number,
) {
  return dataTable<ListedOperator>(request, {
    id: 'people',
    caption: 'People',
    card: { line: ['role', 'access', 'email'] },
    rows: people,
    columns: [
      { key: 'name', header: 'Name', cell: (row) => row.name, value: (row) => row.name },
      { key: 'email', header: 'Email', cell: (row) => row.email, value: (row) => row.email },
      textColumn('role', 'Role', (row) => row.role, {
        show: (role) => (role === 'operator' ? 'operator' : 'read-only'),
      }),
      {
        key: 'access',
        header: 'Access',
        cell: (row) => (row.disabledAtMs === null ? badge('good', 'active') : badge('neutral', 'ended')),
        field: 'access_ended',
        value: (row) => isoTime(row.disabledAtMs),
      },
      momentColumn('added', 'Added', (row) => row.createdAtMs, nowMs),
      ...(viewer.canChange
        ? [
            {
              key: 'actions',
              header: 'Change',
              kind: 'actions' as const,
              cell: (row: ListedOperator) =>
                row.id === viewer.operator.id
                  ? html`<span class="hint">you</span>`
                  : personActions(viewer.csrfToken, row),
            },
          ]
        : []),
    ],
    empty: { title: 'No people yet', text: 'People appear here when they are added.' },
  });
}

function personActions(csrfToken: string, person: ListedOperator): Content {
  const action = `/settings/people/${person.id}`;
  const button = (label: string, fields: Record<string, string>) =>
    actionButton({ action, csrfToken, label, fields });
  if (person.disabledAtMs !== null) return button('Restore access', { access: 'given' });
  return [
    person.role === 'operator'
      ? button('Make read-only', { role: 'viewer' })
      : button('Make operator', { role: 'operator' }),
    passwordLinkButton({ action: `${action}/link`, csrfToken }),
    removeFactorsButton({
      id: `factors-${person.id}`,
      who: person.email,
      openKind: 'button',
      action: `${action}/factors`,
      csrfToken,
    }),
    askButton(
      {
        id: `end-${person.id}`,
        label: 'End access',
        title: `End the access of ${person.email}?`,
        action,
        csrfToken,
        fields: { access: 'ended' },
      },
      'Signed out everywhere. Restore access to let them sign in again.',
    ),
  ];
}

// Where settings are: telemetry processing in the environment, with present values; all others in the console.

interface Setting {
  what: string;
  value: string;
  names: string[];
}

function processingSection(
  request: FastifyRequest,
  { processing, feeds }: Pick<ConsoleDeps, 'processing' | 'feeds'>,
): Content {
  return [
    section(
      {
        title: 'Telemetry processing',
        description:
          'Values of this process. Set in the environment of each monitor process and read at its start; see docs/settings.md.',
      },
      dataTable<Setting>(request, {
        id: 'processing',
        caption: 'Telemetry processing',
        card: { line: ['value'] },
        refreshSeconds: 0,
        isStacked: true,
        rows: [...settingsOf(processing), ...feeds.all.map((feed) => settingOf(feed, processing))],
        columns: [
          { key: 'what', header: 'What', cell: (row) => row.what, value: (row) => row.what },
          { key: 'value', header: 'Now', cell: (row) => row.value, value: (row) => row.value },
          {
            key: 'settings',
            header: 'Set by',
            kind: 'prose',
            cell: (row) => row.names.map((name) => html`${code(name)} `),
            value: (row) => row.names.join(' '),
          },
        ],
        empty: { title: 'Nothing', text: 'There is no setting.' },
      }),
    ),
    section(
      { title: 'Set in this console', description: 'Stored in the database, for all processes.' },
      definitionList([
        {
          term: 'Of a site',
          value: 'name, local prefixes and probes, under the site’s settings and availability',
        },
        {
          term: 'Of operations',
          value: html`<p>connection, automatic import, clusters and the secret of destroy notices, under ${link('/operations', 'Operations')}</p>`,
        },
        { term: 'Of alerts', value: html`<p>channels and mutes, under ${link('/alerts', 'Alerts')}</p>` },
      ]),
    ),
  ];
}

const done = (isHere: boolean, how: string) => (isHere ? how : 'by another process');

function settingOf({ feed, cadence }: RunningFeed, { roles }: ConsoleDeps['processing']): Setting {
  const isHere = cadence.isOn && roles.has(feed.name === live.name ? 'live' : 'feeds');
  return {
    what: `Feed to operations: ${feed.title}`,
    value: done(isHere, `every ${formatCount(cadence.intervalSeconds)} s`),
    names: [feed.cadence.isOn.name, feed.cadence.seconds.name],
  };
}

function settingsOf(now: ConsoleDeps['processing']): Setting[] {
  const runsLoops = now.roles.has('loops');
  return [
    {
      what: 'Uploads are applied',
      value: done(now.roles.has('inbox'), 'as they come'),
      names: ['serve --only'],
    },
    {
      what: 'Applications of 24 hours are ranked',
      value: done(now.hasRanking && runsLoops, 'every 5 min'),
      names: ['SVC_APPLICATION_RANKING'],
    },
    {
      what: 'A web process holds a ranking',
      value: `for ${formatCount(now.rankingHoldSeconds)} s`,
      names: ['SVC_APPLICATION_RANKING_HOLD_SECONDS'],
    },
    {
      what: 'Live windows are kept',
      value: `for ${formatDuration(now.liveHistorySeconds)}, at most ${formatCount(now.liveHistoryMax)} of a site`,
      names: ['SVC_LIVE_HISTORY_SECONDS', 'SVC_LIVE_HISTORY_MAXLEN'],
    },
    {
      what: 'The inventory is imported',
      value: done(
        now.hasInventorySync && now.roles.has('feeds'),
        `every ${formatCount(now.inventorySyncSeconds)} s while that is automatic`,
      ),
      names: ['SVC_OPS_INVENTORY_SYNC', 'SVC_OPS_INVENTORY_SYNC_SECONDS'],
    },
    {
      what: 'Alerts are judged',
      value: done(now.hasAlerts && runsLoops, 'continuously'),
      names: ['SVC_MONITOR_ALERTS'],
    },
    {
      what: 'What has expired is removed',
      value: done(now.hasMaintenance && runsLoops, 'every hour'),
      names: ['SVC_MONITOR_MAINTENANCE'],
    },
  ];
}
