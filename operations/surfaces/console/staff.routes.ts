/** `/console/staff/`: our own people, operators and support. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts, Person } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  badge,
  field,
  form,
  formatCount,
  type Html,
  notice,
  pageHeader,
  section,
  sendPage,
  table,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from './frame.ts';
import { noSuchPage, type Staff } from './guard.ts';

export interface StaffDeps {
  accounts: Accounts;
}

const CreateForm = Type.Object({
  email: Type.String({ maxLength: 320 }),
  name: Type.String({ maxLength: 200 }),
  password: Type.String({ maxLength: 1_000 }),
  role: Type.Union([Type.Literal('operator'), Type.Literal('support')]),
});
const ActiveForm = Type.Object({
  person: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }),
  active: Type.Union([Type.Literal('yes'), Type.Literal('no')]),
});

export function registerStaff(app: App, deps: StaffDeps): void {
  app.get('/staff/', async (request, reply) => show(deps, request, reply));

  app.post('/staff/', { schema: { body: CreateForm } }, async (request, reply) => {
    const { email, name, password, role } = request.body;
    try {
      await deps.accounts.createPerson(request.staff!.actor, { email, name, password, staffRole: role });
      return reply.redirect('/console/staff/', 303);
    } catch (error) {
      if (!(error instanceof CodedError) || error.code === 'accounts.forbidden') throw error;
      return show(deps, request, reply, error.message, 422);
    }
  });

  app.post('/staff/active', { schema: { body: ActiveForm } }, async (request, reply) => {
    const { actor } = request.staff!;
    const personId = Number(request.body.person);
    const people = await deps.accounts.listStaff(actor);
    if (!people.some((person) => person.id === personId)) throw noSuchPage();
    if (personId === actor.personId) {
      const error = 'You can not deactivate yourself. Ask another operator.';
      return show(deps, request, reply, error, 422);
    }
    await deps.accounts.setPersonActive(actor, personId, request.body.active === 'yes');
    return reply.redirect('/console/staff/', 303);
  });
}

async function show(
  deps: StaffDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  error?: string,
  status = 200,
): Promise<FastifyReply> {
  const staff = request.staff!;
  return sendPage(reply, page(staff, await deps.accounts.listStaff(staff.actor), error), status);
}

function page(staff: Staff, people: readonly Person[], error: string | undefined): Html {
  const active = people.filter((person) => person.isActive);
  const operators = active.filter((person) => person.staffRole === 'operator').length;
  const toggle = (person: Person) =>
    staff.canChange && person.id !== staff.actor.personId
      ? actionButton({
          action: '/console/staff/active',
          csrfToken: staff.csrfToken,
          label: person.isActive ? 'Deactivate' : 'Activate',
          kind: person.isActive ? 'danger' : 'button',
          fields: { person: person.id, active: person.isActive ? 'no' : 'yes' },
        })
      : '';
  return consoleFrame({ staff, title: 'Staff', current: 'staff', breadcrumb: [{ label: 'Staff' }] }, [
    pageHeader({
      title: 'Staff',
      state: {
        tone: 'good',
        text: `${formatCount(operators)} of ${formatCount(active.length)} may change things; support reads everything.`,
      },
    }),
    error && notice({ tone: 'bad', title: 'Nothing was changed', text: error }),
    table<Person>({
      caption: 'Staff',
      columns: [
        { key: 'name', header: 'Name', cell: (person) => person.name },
        { key: 'email', header: 'E-mail', cell: (person) => person.email },
        {
          key: 'role',
          header: 'Role',
          cell: (person) =>
            badge(person.staffRole === 'operator' ? 'info' : 'neutral', person.staffRole ?? ''),
        },
        {
          key: 'state',
          header: 'State',
          cell: (person) =>
            badge(person.isActive ? 'good' : 'neutral', person.isActive ? 'active' : 'deactivated'),
        },
        { key: 'act', header: '', kind: 'actions', cell: toggle },
      ],
      rows: people,
      empty: { title: 'Nobody', text: 'Make the first operator by ./svc operations create-operator.' },
    }),
    staff.canChange && addSection(staff),
  ]);
}

function addSection(staff: Staff): Html {
  return section(
    { title: 'Add somebody' },
    form({ action: '/console/staff/', csrfToken: staff.csrfToken, submit: 'Add', submitKind: 'button' }, [
      field({ name: 'name', label: 'Name', required: true, maxLength: 120 }),
      field({ kind: 'email', name: 'email', label: 'E-mail', required: true, maxLength: 254 }),
      field({
        kind: 'password',
        name: 'password',
        label: 'First password',
        hint: 'At least ten characters.',
        required: true,
        autocomplete: 'new-password',
      }),
      field({
        kind: 'select',
        name: 'role',
        label: 'Role',
        value: 'support',
        options: [
          { value: 'support', label: 'Support: reads everything' },
          { value: 'operator', label: 'Operator: may change everything' },
        ],
      }),
    ]),
  );
}
