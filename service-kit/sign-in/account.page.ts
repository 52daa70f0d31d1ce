import {
  age,
  askButton,
  badge,
  type Content,
  definitionList,
  field,
  form,
  formatTime,
  type Html,
  html,
  pageHeader,
  section,
  table,
} from '#service-kit/pages/index.ts';
import { browserName, type SessionSummary } from '#service-kit/sessions/index.ts';
import type { SignInPerson } from './people.ts';
import { passwordHint } from './reset.page.ts';

export interface AccountView {
  base: string;
  person: SignInPerson & { csrfToken: string };
  sessions: readonly SessionSummary[];
  /** The section about second factors. */
  factors: Html;
  nowMs: number;
  passwordFault?: { field: string; message: string } | undefined;
}

/** The content of the page "Your account". */
export function accountSections(view: AccountView): Content {
  const { person, sessions } = view;
  const others = sessions.length - 1;
  return [
    pageHeader({
      title: 'Your account',
      state: {
        tone: 'good',
        text:
          others <= 0
            ? 'You are signed in in this browser only.'
            : `You are signed in in ${others === 1 ? 'one other browser' : `${others} other browsers`}.`,
      },
    }),
    definitionList([
      { term: 'Name', value: person.name },
      { term: 'Email', value: person.email },
    ]),
    passwordSection(view),
    view.factors,
    sessionsSection(view),
  ];
}

function passwordSection({ base, person, passwordFault }: AccountView): Html {
  const errorOf = (name: string) => (passwordFault?.field === name ? passwordFault.message : undefined);
  return section(
    { title: 'Password', id: 'password', description: 'Changing it ends your sessions in other browsers.' },
    form(
      {
        action: `${base}/password`,
        csrfToken: person.csrfToken,
        submit: 'Change password',
        submitKind: 'button',
      },
      [
        // Password managers look for whose password this is.
        html`<input type="hidden" name="username" autocomplete="username" value="${person.email}">`,
        field({
          kind: 'password',
          name: 'current',
          label: 'Current password',
          required: true,
          autocomplete: 'current-password',
          error: errorOf('current'),
        }),
        field({
          kind: 'password',
          name: 'next',
          label: 'New password',
          hint: passwordHint,
          required: true,
          autocomplete: 'new-password',
          error: errorOf('next'),
        }),
      ],
    ),
  );
}

function sessionsSection({ base, person, sessions, nowMs }: AccountView): Html {
  const { csrfToken } = person;
  const others = sessions.filter((session) => !session.isCurrent).length;
  return section(
    {
      title: 'Sessions',
      id: 'sessions',
      description:
        'Browsers that are signed in to your account. End sessions that you do not recognize, then change your password.',
      actions:
        others > 0 &&
        askButton(
          {
            id: 'end-others',
            label: others === 1 ? 'End the other session' : `End the ${others} other sessions`,
            title: 'End all other sessions?',
            action: `${base}/sessions/end-others`,
            csrfToken,
          },
          'Who uses them has to sign in again. This browser stays signed in.',
        ),
    },
    table<SessionSummary>({
      caption: 'Sessions',
      card: { line: ['seen', 'source'] },
      columns: [
        {
          key: 'browser',
          header: 'Browser',
          cell: (session) => [
            browserName(session.userAgent),
            session.isCurrent && html` ${badge('good', 'this one')}`,
          ],
        },
        { key: 'source', header: 'Address', kind: 'code', cell: (session) => session.source ?? 'unknown' },
        { key: 'started', header: 'Signed in', cell: (session) => formatTime(session.startedAt.getTime()) },
        { key: 'seen', header: 'Last used', cell: (session) => age(session.lastSeenAt.getTime(), nowMs) },
        {
          key: 'end',
          header: '',
          kind: 'actions',
          cell: (session) =>
            session.isCurrent
              ? ''
              : askButton(
                  {
                    ...{ id: `end-${session.id}`, label: 'End', title: 'End this session?' },
                    ...{ action: `${base}/sessions/end`, csrfToken, fields: { session: session.id } },
                  },
                  'Who uses it has to sign in again.',
                ),
        },
      ],
      rows: sessions,
      empty: { title: 'None', text: 'Your sessions appear here.' },
    }),
  );
}
