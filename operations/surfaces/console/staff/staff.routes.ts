/** `/console/staff/`: who works here and what they may do. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Person, StaffActor } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Delivery } from '#service-kit/mail/index.ts';
import {
  badge,
  banner,
  type Content,
  cellColumn,
  formatCount,
  type Html,
  html,
  inputForm,
  pageHeader,
  section,
  sendPage,
  type Tone,
  table,
  toastOf,
} from '#service-kit/pages/index.ts';
import { linkDelivery } from '#service-kit/sign-in/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { personActions } from '../person-actions.ts';

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

export function registerStaff(app: App, deps: Features): void {
  app.get('/staff/', { schema: { querystring: Query } }, async (request, reply) =>
    show(deps, request, reply, { toast: toastOf(outcomes, request.query.done, 'good') }),
  );

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
async function findColleague(deps: Features, actor: StaffActor, given: string): Promise<number> {
  const people = await deps.accounts.listStaff(actor);
  const found = people.find((each) => each.id === Number(given));
  if (!found) throw noSuchPage();
  return found.id;
}

function refuse(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
  given?: StaffPageOptions['given'],
): Promise<FastifyReply> {
  if (!(error instanceof CodedError) || error.code === 'accounts.forbidden') throw error;
  return show(deps, request, reply, { error: error.message, ...(given ? { given } : {}) }, 422);
}

async function show(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  said: Pick<StaffPageOptions, 'toast' | 'error' | 'given' | 'delivery'>,
  status = 200,
): Promise<FastifyReply> {
  const staff = request.staff!;
  const people = await deps.accounts.listStaff(staff.actor);
  return sendPage(reply, staffPage({ staff, people, ...said }), status);
}

interface StaffPageOptions {
  staff: Staff;
  people: readonly Person[];
  toast?: { tone: Tone; text: string } | undefined;
  error?: string;
  /** How a link that sets a password reached its reader. */
  delivery?: Delivery;
  /** What a refused form of a new person held. */
  given?: { name: string; email: string; role: string };
}

/** `/console/staff/`: our own people, operators and support. */
function staffPage(options: StaffPageOptions): Html {
  const { staff, people, error, toast } = options;
  return consoleFrame({ staff, title: 'Staff', current: 'staff', toast }, [
    pageHeader({ title: 'Staff', state: stateOf(people) }),
    error && banner({ tone: 'bad', title: 'Nothing was changed', text: error }),
    options.delivery && linkDelivery(options.delivery),
    table<Person>({
      caption: 'Staff',
      card: { line: ['role', 'state', 'email'] },
      columns: [
        cellColumn('name', 'Name', (person) => person.name),
        cellColumn('email', 'Email', (person) => person.email),
        cellColumn('role', 'Role', (person) =>
          badge(person.staffRole === 'operator' ? 'info' : 'neutral', person.staffRole ?? ''),
        ),
        cellColumn('state', 'State', (person) =>
          badge(person.isActive ? 'good' : 'neutral', person.isActive ? 'active' : 'deactivated'),
        ),
        ...(staff.canChange
          ? [
              {
                key: 'act',
                header: 'Actions',
                kind: 'actions' as const,
                cell: (person: Person) => actionsFor(staff, person),
              },
            ]
          : []),
      ],
      rows: people,
      empty: { title: 'No staff', text: 'Create the first operator with ./svc operations create-operator.' },
    }),
    staff.canChange && addSection(options),
  ]);
}

function stateOf(people: readonly Person[]): { tone: Tone; text: string } {
  const active = people.filter((person) => person.isActive);
  const operators = active.filter((person) => person.staffRole === 'operator').length;
  if (operators === 1)
    return {
      tone: 'warn',
      text: 'Only one operator. Add a second one, who can restore access if the first is locked out.',
    };
  return {
    tone: 'good',
    text: `${formatCount(operators)} of ${formatCount(active.length)} have the operator role; support is read-only.`,
  };
}

function actionsFor(staff: Staff, person: Person): Content {
  // One's own password and access are changed on the page of one's own account, or by a colleague.
  if (person.id === staff.actor.personId) return html`<span class="hint">you</span>`;
  return personActions({
    base: '/console/staff',
    csrfToken: staff.csrfToken,
    person,
    deactivation: 'Their sessions end. They cannot sign in until an operator activates them again.',
  });
}

function addSection({ staff, given }: StaffPageOptions): Html {
  return section(
    { title: 'Add a person', description: 'We email them a link to set their password.' },
    inputForm(
      { action: '/console/staff/', csrfToken: staff.csrfToken, submit: 'Add', submitKind: 'button' },
      [
        { name: 'name', label: 'Name', required: true, maxLength: 120 },
        { kind: 'email', name: 'email', label: 'Email', required: true, maxLength: 254, autocomplete: 'off' },
        {
          kind: 'select',
          name: 'role',
          label: 'Role',
          value: 'support',
          options: [
            { value: 'support', label: 'Support: reads everything' },
            { value: 'operator', label: 'Operator: read and write' },
          ],
        },
      ],
      { typed: given },
    ),
  );
}
