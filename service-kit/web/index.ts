import type { FastifyReply, FastifyRequest } from 'fastify';
import { HttpError } from '#service-kit/http/index.ts';
import { actionButton, askButton, type Html, isRefresh } from '#service-kit/pages/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import { csrfFault, type Session, type Sessions } from '#service-kit/sessions/index.ts';

/**
 * What the surfaces of both servers do alike: guarding pages, tables with their files, and buttons that administer
 * people. What a page looks like is `pages`; how a person signs in is `sign-in`.
 */
export {
  ageColumn,
  countColumn,
  type DataColumn,
  dataTable,
  figureColumn,
  fileHref,
  linkColumn,
  momentColumn,
  offerData,
  pagedRows,
  rowsLimit,
  sendCsv,
  sendWantedFile,
  textColumn,
  timeColumn,
  wantedFile,
} from './data-table.ts';
export {
  idCursor,
  idFilter,
  isId,
  type ListDeclaration,
  type ListFilter,
  type ListValues,
  numberOf,
  readFilters,
  readList,
} from './list.ts';

interface PersonButtonOptions {
  action: string;
  csrfToken: string;
  fields?: Readonly<Record<string, string | number>>;
}

/** Mails a link that sets a new password; the answer says how it was delivered (`linkDelivery`). */
export function passwordLinkButton(options: PersonButtonOptions): Html {
  return actionButton({ ...options, label: 'Send a password link' });
}

/** Asks first. `who` is the person's name or address, `id` is unique in the page. */
export function removeFactorsButton(
  options: PersonButtonOptions & { id: string; who: string; openKind?: 'button' | 'danger' },
): Html {
  const { who, ...rest } = options;
  return askButton(
    { ...rest, label: 'Remove second factors', title: `Remove the second factors of ${who}?` },
    'For a person who lost all second factors. Their sessions end. They sign in with the password only until they set up a new factor.',
  );
}

/** Reads at once what a page shows, by name. */
export async function readAll<Reads extends Readonly<Record<string, unknown>>>(
  reads: Reads,
): Promise<{ [Name in keyof Reads]: Awaited<Reads[Name]> }> {
  const found = Object.entries(reads).map(async ([name, read]) => [name, await read]);
  return Object.fromEntries(await Promise.all(found));
}

// Steps of the hooks that guard the pages of a surface. Each surface puts them in its order, and adds who may see it.

/** True for a request that may change something. */
export function isChange(request: FastifyRequest): boolean {
  return request.method !== 'GET' && request.method !== 'HEAD';
}

/**
 * The session of a request. A page that renews itself does not keep its session alive: no person has used it. A session
 * that the OpenID provider is to be asked about shows nothing before; a form of it is asked for proof (`confirmIdentity`).
 */
export async function readSession(
  sessions: Pick<Sessions, 'read'>,
  request: FastifyRequest,
): Promise<Session | null> {
  const session = await sessions.read(request.headers.cookie, { isActivity: !isRefresh(request) });
  return session?.isCheckDue && !isChange(request) ? null : session;
}

/**
 * Sends a stranger to sign in, and from there back to the page that was asked for. A page that renews itself hears 401,
 * so that no form to sign in gets into its lists.
 */
export function askToSignIn(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (isRefresh(request)) {
    return reply.code(401).type('text/plain').send('Sign in first.\n');
  }
  const next = request.method === 'GET' ? `?next=${encodeURIComponent(request.url)}` : '';
  return reply.redirect(`/sign-in${next}`, 303);
}

/** Every change must contain the session's token. The hook that calls this runs after the body is read. */
export function requireToken(request: FastifyRequest, session: { csrfToken: string }): void {
  const fault = csrfFault(request, session.csrfToken);
  if (fault !== null) {
    throw new HttpError(403, {
      code: 'forbidden',
      message: `Nothing was changed: ${fault}. Reload the page and try again.`,
    });
  }
}

/** True where this person first has to set up a second factor; the pages of their own account stay open for that. */
export async function lacksSecondFactor(
  deps: { factors: SecondFactors; requireSecondFactor: boolean },
  request: FastifyRequest,
  session: Session,
  accountPath: string,
): Promise<boolean> {
  if (!deps.requireSecondFactor || request.url.startsWith(accountPath)) return false;
  // Of a session that was begun at the OpenID provider the provider says it.
  if (session.identityId !== null) return !session.hasSecondFactor;
  return !(await deps.factors.stateOf(session.personId)).hasAny;
}

/** One 404 for what is another customer's, for what a person may not see, and for what never existed. */
export function noSuchPage(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'No page exists at this path.' });
}
