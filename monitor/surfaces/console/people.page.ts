/** `/settings`: who may sign in and what they may do, and one's own password. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { FirstPassword, ListedOperator } from '#monitor/operators/index.ts';
import { type App, HttpError, sourceBucket } from '#service-kit/http/index.ts';
import {
  actionButton,
  askButton,
  badge,
  type Content,
  codeBlock,
  drawer,
  field,
  form,
  formatCount,
  type Html,
  html,
  isoTime,
  moment,
  notice,
  pageHeader,
  section,
  toast,
} from '#service-kit/pages/index.ts';
import { dataTable } from './data-table.ts';
import { faultText, sendConsolePage } from './frame.ts';
import { viewerOf } from './guard.ts';
import type { ConsoleDeps } from './index.ts';
import { processingSection } from './processing-section.ts';

interface Shown {
  /** What was typed into the form of a new person, after a fault. */
  invite?: { email: string; name: string; role: string; fault: string };
  passwordFault?: string;
  fault?: string;
  first?: FirstPassword;
  toast?: Html;
}

const Params = Type.Object({ operatorId: Type.Integer({ minimum: 1 }) });
const Role = Type.Union([Type.Literal('operator'), Type.Literal('viewer')]);
const Person = Type.Object({
  email: Type.String({ maxLength: 320 }),
  name: Type.Optional(Type.String({ maxLength: 200 })),
  role: Role,
});
const Passwords = Type.Object({
  current: Type.String({ maxLength: 1_000 }),
  next: Type.String({ maxLength: 1_000 }),
});
const Change = Type.Object({ role: Type.Optional(Role), access: Type.Optional(Type.String()) });

export function registerPeoplePage(app: App, deps: ConsoleDeps): void {
  app.get(
    '/settings',
    { schema: { querystring: Type.Object({ saved: Type.Optional(Type.String()) }) } },
    async (request, reply) =>
      showPeople(deps, request, reply, request.query.saved ? { toast: toast('good', 'Saved.') } : {}),
  );

  app.post('/settings/people', { schema: { body: Person } }, async (request, reply) => {
    const { email, name = '', role } = request.body;
    try {
      const first = await deps.operators.invite(viewerOf(request).actor, { email, name, role });
      // Answered here instead of redirected to: this answer is the only one that will ever hold the password.
      return await showPeople(deps, request, reply, { first });
    } catch (error) {
      const fault = faultText(error, 'operators.invalid', 'operators.email_taken');
      return showPeople(deps, request, reply, { invite: { email, name, role, fault } });
    }
  });

  app.post('/settings/people/:operatorId', { schema: { params: Params, body: Change } }, (request, reply) =>
    changePerson(deps, request, reply, request.params.operatorId, request.body),
  );

  app.post(
    '/settings/people/:operatorId/password',
    { schema: { params: Params } },
    async (request, reply) => {
      const { operatorId } = request.params;
      try {
        const first = await deps.operators.resetPassword(viewerOf(request).actor, operatorId);
        if (!first) throw unknownPerson();
        await deps.sessions.endAll(operatorId);
        return await showPeople(deps, request, reply, { first });
      } catch (error) {
        if (error instanceof HttpError) throw error;
        return showPeople(deps, request, reply, { fault: faultText(error, 'operators.own') });
      }
    },
  );

  app.post(
    '/settings/password',
    { config: { isOwn: true }, schema: { body: Passwords } },
    async (request, reply) => changePassword(deps, request, reply, request.body),
  );
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
  if (change.isDisabled) await deps.sessions.endAll(operatorId);
  return reply.redirect('/settings?saved=1', 303);
}

/** Guesses count as failed sign-ins: a borrowed session must not find out the password. */
async function changePassword(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  passwords: Static<typeof Passwords>,
) {
  const { operator } = viewerOf(request);
  const { cookie } = request.headers;
  const attempt = await deps.sessions.beginAttempt(operator.email, sourceBucket(request.ip), cookie);
  if (!attempt) {
    const passwordFault = 'Too many failed attempts. Wait ten minutes, then try again.';
    return showPeople(deps, request, reply, { passwordFault });
  }
  try {
    await deps.operators.changeOwnPassword(operator.id, passwords);
  } catch (error) {
    if (error instanceof CodedError && error.code === 'operators.invalid') await attempt.giveBack();
    const passwordFault = faultText(error, 'operators.wrong_password', 'operators.invalid');
    return showPeople(deps, request, reply, { passwordFault });
  }
  await attempt.giveBack();
  await deps.sessions.endOthers(operator.id, cookie);
  return reply.redirect('/settings?saved=1', 303);
}

function unknownPerson(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'There is no such person.' });
}

async function showPeople(deps: ConsoleDeps, request: FastifyRequest, reply: FastifyReply, shown: Shown) {
  const viewer = viewerOf(request);
  const people = await deps.operators.list();
  const able = people.filter((person) => person.disabledAtMs === null);
  const operators = able.filter((person) => person.role === 'operator').length;
  const invite = inviteForm(viewer.csrfToken, shown.invite);
  const content: Content[] = [
    pageHeader({
      title: 'Settings',
      state: {
        tone: operators > 1 ? 'good' : 'info',
        text: `${formatCount(able.length)} ${able.length === 1 ? 'person' : 'people'} may sign in, ${formatCount(operators)} of them may change things.`,
      },
      actions:
        viewer.canChange &&
        drawer(
          { id: 'new-person', open: 'Add a person', title: 'Add a person', openKind: 'primary' },
          invite,
        ),
    }),
    shown.fault && notice({ tone: 'bad', title: 'Nothing was changed', text: shown.fault }),
    shown.first && firstPassword(shown.first),
    shown.invite && section({ title: 'Add a person' }, invite),
    section(
      {
        title: 'People',
        id: 'people',
        description:
          'An operator may change everything; a read-only person sees everything and changes nothing.',
      },
      peopleTable(request, people, Date.now()),
    ),
    section(
      { title: 'Your password', id: 'password', description: 'Changing it signs you out everywhere else.' },
      passwordForm(viewer.csrfToken, viewer.operator.email, shown.passwordFault),
    ),
  ];
  content.push(processingSection(request, deps.processing));
  const isRefused = shown.invite ?? shown.passwordFault ?? shown.fault;
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

function firstPassword({ operator, password }: FirstPassword): Content {
  return [
    notice({
      tone: 'good',
      title: `The password of ${operator.email} is shown only now`,
      text: 'Hand it over on a safe way. Its owner changes it here after signing in.',
    }),
    codeBlock({ label: 'Password', code: password }),
  ];
}

function inviteForm(csrfToken: string, refused: Shown['invite']) {
  const suffix = refused ? '-refused' : '';
  return form({ action: '/settings/people', csrfToken, submit: 'Add person' }, [
    field({
      id: `field-email${suffix}`,
      kind: 'email',
      name: 'email',
      label: 'E-mail address',
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

function passwordForm(csrfToken: string, email: string, fault: string | undefined) {
  return form({ action: '/settings/password', csrfToken, submit: 'Change password' }, [
    // Password managers look for whose password this is.
    html`<input type="hidden" name="username" autocomplete="username" value="${email}">`,
    field({
      kind: 'password',
      name: 'current',
      label: 'Present password',
      required: true,
      autocomplete: 'current-password',
      error: fault,
    }),
    field({
      kind: 'password',
      name: 'next',
      label: 'New password',
      hint: 'At least 12 characters.',
      required: true,
      autocomplete: 'new-password',
    }),
  ]);
}

function peopleTable(request: FastifyRequest, people: readonly ListedOperator[], nowMs: number) {
  const viewer = viewerOf(request);
  return dataTable<ListedOperator>(request, {
    id: 'people',
    caption: 'People',
    rows: people,
    columns: [
      { key: 'name', header: 'Name', cell: (row) => row.name, value: (row) => row.name },
      { key: 'email', header: 'E-mail', cell: (row) => row.email, value: (row) => row.email },
      {
        key: 'role',
        header: 'Role',
        cell: (row) => (row.role === 'operator' ? 'operator' : 'read-only'),
        value: (row) => row.role,
      },
      {
        key: 'access',
        header: 'Access',
        cell: (row) => (row.disabledAtMs === null ? badge('good', 'may sign in') : badge('neutral', 'ended')),
        field: 'access_ended',
        value: (row) => isoTime(row.disabledAtMs),
      },
      {
        key: 'added',
        header: 'Added',
        cell: (row) => moment(row.createdAtMs, nowMs),
        value: (row) => isoTime(row.createdAtMs),
      },
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
    empty: { title: 'Nobody', text: 'People appear here when they are added.' },
  });
}

function personActions(csrfToken: string, person: ListedOperator): Content {
  const action = `/settings/people/${person.id}`;
  const button = (label: string, fields: Record<string, string>) =>
    actionButton({ action, csrfToken, label, fields });
  if (person.disabledAtMs !== null) return button('Let in again', { access: 'given' });
  return [
    person.role === 'operator'
      ? button('Make read-only', { role: 'viewer' })
      : button('Make operator', { role: 'operator' }),
    askButton(
      {
        id: `reset-${person.id}`,
        label: 'Reset password',
        title: `Reset the password of ${person.email}?`,
        openKind: 'button',
        action: `${action}/password`,
        csrfToken,
      },
      'Their password stops working and their sessions end. The new one is shown once, on the next page.',
    ),
    askButton(
      {
        id: `end-${person.id}`,
        label: 'End access',
        title: `End the access of ${person.email}?`,
        action,
        csrfToken,
        fields: { access: 'ended' },
      },
      'Their sessions end and they can’t sign in until they are let in again.',
    ),
  ];
}
