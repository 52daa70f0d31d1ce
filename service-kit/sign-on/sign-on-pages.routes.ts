/**
 * Pages of a sign-on for people who are signed in; each console registers them below its guard. `/sign-on/ask` vouches for
 * them to the other program, `/sign-on/link` links an account of the other program with theirs.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { oneLine } from '#common/text/index.ts';
import { answerPath, askPath, isStateText, isTargetPath } from '#contracts/sign-on/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Mail, Post } from '#service-kit/mail/index.ts';
import {
  assetUrl,
  banner,
  CONTENT_SECURITY_POLICY,
  type Content,
  form,
  type Html,
  hiddenField,
  html,
  link,
  PAGE_HEADERS,
  sendPage,
} from '#service-kit/pages/index.ts';
import { readCookie, type Sessions } from '#service-kit/sessions/index.ts';
import { alone, type SignInPerson } from '#service-kit/sign-in/index.ts';
import { ticketMinutes } from './assertions.ts';
import type { SignOn } from './sign-on.ts';
import type { Answer } from './store.ts';

export const linkPath = '/sign-on/link';
/** Assertions about one person in ten minutes. */
const issuesMax = 60;

export interface SignOnPagesOptions<Actor extends AuditActor> {
  /** As pages call this program. */
  area: string;
  /** The console's first page. */
  home: string;
  signOn: SignOn<Actor>;
  sessions: Sessions;
  post: Post;
  /** The person whom the guard let in. */
  visitorOf: (request: FastifyRequest) => { actor: Actor; person: SignInPerson; csrfToken: string };
}

export function registerSignOnPages<Actor extends AuditActor>(
  scope: App,
  options: SignOnPagesOptions<Actor>,
): void {
  const Ask = Type.Object({ audience: Type.String(), state: Type.String(), to: Type.String() });
  scope.get(askPath, { schema: { querystring: Ask } }, async (request, reply) => {
    const { signOn, sessions, visitorOf } = options;
    const { actor, person } = visitorOf(request);
    const { audience, state, to: path } = request.query;
    const session = await sessions.read(request.headers.cookie);
    if (!isStateText(state) || !isTargetPath(path) || session === null)
      return refuse(
        options,
        reply,
        400,
        'The link to this page is incomplete. Follow it again from its start.',
      );
    if (!(await sessions.countUse(`issue:${person.id}`, issuesMax)))
      return refuse(options, reply, 429, 'Too many sign-ons. Wait ten minutes, then try again.');
    const issued = await signOn.issue(actor, person, session, { audience, state, path });
    if (issued === null) {
      const text =
        'This console does not sign operators in to the program that asked for it. An operator sets that under Single sign-on.';
      return refuse(options, reply, 403, text);
    }
    const page = continuePage(options, person, issued);
    const policy = CONTENT_SECURITY_POLICY.replace("form-action 'self'", `form-action ${issued.address}`);
    return reply
      .headers({ ...PAGE_HEADERS, 'content-security-policy': policy })
      .type('text/html; charset=utf-8')
      .send(String(page));
  });

  scope.get(linkPath, async (request, reply) => {
    const { answer } = await answerOf(options, request);
    return answer === null ? nothingToLink(options, reply) : showLink(options, request, reply, answer, 200);
  });

  // One's own account: also for people who only read.
  const config = { isOwn: true };
  scope.post(linkPath, { config }, async (request, reply) => {
    const { answer, ticket } = await answerOf(options, request);
    if (answer === null) return nothingToLink(options, reply);
    const { actor, person } = options.visitorOf(request);
    try {
      await options.signOn.linkOwn(actor, person, answer);
    } catch (error) {
      if (!(error instanceof CodedError) || error.code !== 'sign_on.invalid') throw error;
      return showLink(options, request, reply, answer, 409, error.message);
    }
    await options.signOn.take(ticket!, answer);
    for (const cookie of clearedCookies(options.sessions)) reply.header('set-cookie', cookie);
    const { post } = options;
    post.sendLater(async () =>
      accountLinkedMail(person, answer.subjectEmail, post.linkTo('/reset-password')),
    );
    return reply.redirect(answer.path, 303);
  });
}

async function answerOf<Actor extends AuditActor>(
  { signOn, sessions }: SignOnPagesOptions<Actor>,
  request: FastifyRequest,
): Promise<{ answer: Answer | null; ticket: string | null }> {
  const { secret, ticket } = readCookies(sessions, request.headers.cookie);
  return { answer: await signOn.findAnswer(secret, ticket), ticket };
}

/** Sends itself; without JavaScript by its button. */
function continuePage<Actor extends AuditActor>(
  { area }: SignOnPagesOptions<Actor>,
  person: SignInPerson,
  { address, assertion }: { address: string; assertion: string },
): Html {
  const action = `${address}${answerPath}`;
  return alone(area, 'Continue to the other console', [
    html`<p>You are signed in here as ${person.email}. ${new URL(address).host} is told so, and signs you in.</p>`,
    html`<div data-submit-at-once>${form({ action, csrfToken: null, submit: 'Continue' }, hiddenField('assertion', assertion))}</div>`,
    html`<script type="module" src="${assetUrl('sign-on.js')}"></script>`,
  ]);
}

function showLink<Actor extends AuditActor>(
  { area, home, visitorOf }: SignOnPagesOptions<Actor>,
  request: FastifyRequest,
  reply: FastifyReply,
  answer: Answer,
  status: number,
  error?: string,
): FastifyReply {
  const { person, csrfToken } = visitorOf(request);
  const content: Content = [
    error !== undefined && banner({ tone: 'bad', title: 'The accounts were not linked', text: error }),
    html`<p>In the other console you are <b>${answer.subjectEmail}</b>, and here <b>${person.email}</b>.</p>`,
    html`<p class="hint">Once they are linked, who is signed in there as ${answer.subjectEmail} is signed in here as you. Link only accounts that are both yours.</p>`,
    form(
      {
        action: linkPath,
        csrfToken,
        submit: 'Link the accounts',
        cancel: link(home, 'Cancel', { kind: 'button' }),
      },
      '',
    ),
  ];
  return sendPage(reply, alone(area, 'Link your accounts', content), status);
}

function nothingToLink<Actor extends AuditActor>(
  options: SignOnPagesOptions<Actor>,
  reply: FastifyReply,
): FastifyReply {
  const text =
    'No sign-on of this browser waits to be linked, or it is older than ten minutes. Follow the link in the other console again.';
  return refuse(options, reply, 410, text);
}

function refuse<Actor extends AuditActor>(
  { area, home }: SignOnPagesOptions<Actor>,
  reply: FastifyReply,
  status: number,
  text: string,
): FastifyReply {
  const content = [
    html`<p>${text}</p>`,
    html`<div class="form-buttons">${link(home, 'To the console', { kind: 'primary' })}</div>`,
  ];
  return sendPage(reply, alone(area, 'You were not signed in', content), status);
}

type Named = Pick<Sessions, 'cookieName'>;

/** The secret of a browser that has begun, to which its assertion is bound. */
const secretName = ({ cookieName }: Named) => `${cookieName}_sign_on`;
/** The ticket of the browser that brought an assertion. */
const ticketName = ({ cookieName }: Named) => `${cookieName}_ticket`;

interface SignOnCookies {
  secret: string | null;
  ticket: string | null;
}

/** The two cookies of a sign-on at the receiver; neither is known to the other program. */
export function readCookies(sessions: Named, header: string | undefined): SignOnCookies {
  return {
    secret: readCookie(header, secretName(sessions)),
    ticket: readCookie(header, ticketName(sessions)),
  };
}

export const secretCookie = (sessions: Named, secret: string) => cookie(secretName(sessions), secret);
export const ticketCookie = (sessions: Named, ticket: string) => cookie(ticketName(sessions), ticket);

/** Values of `Set-Cookie` that clear both. */
export const clearedCookies = (sessions: Named): string[] => [
  cookie(secretName(sessions), null),
  cookie(ticketName(sessions), null),
];

// Lax: a browser sends them when it follows the redirect after the form that came from the other site.
function cookie(name: string, value: string | null): string {
  const secure = name.startsWith('__Host-') ? '; Secure' : '';
  const seconds = value === null ? 0 : ticketMinutes * 60;
  return `${name}=${value ?? ''}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${seconds}`;
}

/** For a person whose account can from now on be used from the other console. */
function accountLinkedMail(reader: { email: string; name: string }, other: string, resetUrl: string): Mail {
  // An address of the other program: a line break in it would be a paragraph of its own.
  const account = oneLine(other);
  const paragraphs = [
    `Hello ${oneLine(reader.name)},`,
    `your account was linked with the account ${account} of the other console. Who is signed in there as ${account} is signed in here as you.`,
    'If this was not you, set a new password now and ask an operator to remove the link:',
    resetUrl,
  ];
  return { to: reader.email, subject: 'Your account was linked', text: `${paragraphs.join('\n\n')}\n` };
}
