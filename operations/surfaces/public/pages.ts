/**
 * Pages that need no account: the front page, signing in and out, and the pages of errors.
 *
 * Sign-in is one door for customers and staff; where it leads follows from who came. It never says whether an email
 * address exists, and refuses unread once an address or a source has failed too often.
 */
import type { FastifyRequest } from 'fastify';
import type { Features } from '#operations/features.ts';
import { type App, type ErrorFields, hidden } from '#service-kit/http/index.ts';
import {
  alonePage,
  CONTENT_SECURITY_POLICY,
  errorPage,
  html,
  link,
  presentProvider,
  sendPage,
} from '#service-kit/pages/index.ts';
import { type DemoRole, registerSignIn } from '#service-kit/sign-in/index.ts';

export interface PublicPagesDeps extends Features {
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
  demoRoles: readonly DemoRole[];
}

/** Registers the pages, and the policy under which every HTML answer leaves. */
export function registerPublicPages(app: App, deps: PublicPagesDeps): void {
  app.addHook('onSend', async (_request, reply) => {
    // Error pages do not pass `sendPage`; every HTML response gets the same policy.
    const type = reply.getHeader('content-type');
    if (typeof type !== 'string' || !type.startsWith('text/html')) return;
    if (reply.hasHeader('content-security-policy')) return;
    reply.header('content-security-policy', CONTENT_SECURITY_POLICY);
    reply.header('x-content-type-options', 'nosniff');
    reply.header('referrer-policy', 'same-origin');
  });
  registerFrontPage(app);
  registerSignIn(app, { ...deps, people: deps.accounts.people, area: 'Virtual servers' });
}

/**
 * An error as a page; null where a program asked (JSON then). It names no request and no address: the page of another
 * customer's server must be, byte for byte, the page of a server that does not exist.
 */
export function renderErrorPage(request: FastifyRequest, status: number, fields: ErrorFields): string | null {
  const path = request.url.split('?')[0]!;
  if (path.startsWith('/api/')) return null;
  const isConsole = path.startsWith('/console');
  const isPortal = path.startsWith('/client');
  return String(
    errorPage({
      status,
      area: isConsole ? 'Operations' : isPortal ? 'Customer portal' : 'Virtual servers',
      home: isConsole ? '/console/' : isPortal ? '/client/' : '/',
      ...(status === 404 || status >= 500 ? {} : { text: fields.message, faults: fields.fields }),
      ...(status >= 500 ? { requestId: request.id } : {}),
    }),
  );
}

/** `/`. */
function registerFrontPage(app: App): void {
  app.get('/', { schema: hidden }, async (_request, reply) => sendPage(reply, frontPage()));
}

function frontPage() {
  return alonePage(
    { area: 'Virtual servers', title: presentProvider().name },
    html`<h1>Virtual servers, by one call</h1><div class="form stacked"><p>Deploy a server, see what it talks to, and pay for the hours that it runs.</p><div class="form-buttons">${link('/sign-in', 'Sign in', { kind: 'primary' })}${link('/docs/api/', 'API reference', { kind: 'button' })}</div></div>`,
  );
}
