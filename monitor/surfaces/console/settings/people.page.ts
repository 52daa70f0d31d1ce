/** The page of people with access, and their roles. */
import type { FastifyRequest } from 'fastify';
import type { Invited, ListedOperator } from '#monitor/operators/index.ts';
import {
  actionButton,
  askButton,
  badge,
  banner,
  type Content,
  drawer,
  field,
  form,
  formatCount,
  html,
  isoTime,
  link,
  moment,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { linkDelivery } from '#service-kit/sign-in/index.ts';
import { dataTable, passwordLinkButton, removeFactorsButton } from '#service-kit/web/index.ts';
import type { Viewer } from '../guard.ts';

/** What the request before this page led to. */
export interface ShownAnswer {
  /** Input of a refused form for a new person. */
  invite?: { email: string; name: string; role: string; fault: string };
  fault?: string;
  /** How the password link was delivered. */
  invited?: Invited;
}

export interface PeoplePage {
  people: readonly ListedOperator[];
  shown: ShownAnswer;
  viewer: Viewer;
  nowMs: number;
}

export function peoplePage(request: FastifyRequest, { people, shown, viewer, nowMs }: PeoplePage): Content {
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
      {
        key: 'role',
        header: 'Role',
        cell: (row) => (row.role === 'operator' ? 'operator' : 'read-only'),
        value: (row) => row.role,
      },
      {
        key: 'access',
        header: 'Access',
        cell: (row) => (row.disabledAtMs === null ? badge('good', 'active') : badge('neutral', 'ended')),
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
