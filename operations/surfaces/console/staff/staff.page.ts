import type { Person } from '#operations/accounts/index.ts';
import type { Delivery } from '#service-kit/mail/index.ts';
import {
  badge,
  banner,
  type Content,
  field,
  form,
  formatCount,
  type Html,
  html,
  pageHeader,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { linkDelivery } from '#service-kit/sign-in/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { personActions } from '../person-actions.ts';

export interface StaffPageOptions {
  staff: Staff;
  people: readonly Person[];
  toast?: { tone: Tone; text: string };
  error?: string;
  /** How a link that sets a password reached its reader. */
  delivery?: Delivery;
  /** What a refused form of a new person held. */
  given?: { name: string; email: string; role: string };
}

/** `/console/staff/`: our own people, operators and support. */
export function staffPage(options: StaffPageOptions): Html {
  const { staff, people, error, toast } = options;
  return consoleFrame({ staff, title: 'Staff', current: 'staff', breadcrumb: [{ label: 'Staff' }], toast }, [
    pageHeader({ title: 'Staff', state: stateOf(people) }),
    error && banner({ tone: 'bad', title: 'Nothing was changed', text: error }),
    options.delivery && linkDelivery(options.delivery),
    table<Person>({
      caption: 'Staff',
      card: { line: ['role', 'state', 'email'] },
      columns: [
        { key: 'name', header: 'Name', cell: (person) => person.name },
        { key: 'email', header: 'Email', cell: (person) => person.email },
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
    form({ action: '/console/staff/', csrfToken: staff.csrfToken, submit: 'Add', submitKind: 'button' }, [
      field({ name: 'name', label: 'Name', required: true, maxLength: 120, value: given?.name }),
      field({
        kind: 'email',
        name: 'email',
        label: 'Email',
        required: true,
        maxLength: 254,
        autocomplete: 'off',
        value: given?.email,
      }),
      field({
        kind: 'select',
        name: 'role',
        label: 'Role',
        value: given?.role ?? 'support',
        options: [
          { value: 'support', label: 'Support: reads everything' },
          { value: 'operator', label: 'Operator: read and write' },
        ],
      }),
    ]),
  );
}
