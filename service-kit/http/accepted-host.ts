/**
 * Refuses requests whose `Host` is not a name of this server (421), against DNS rebinding: a page of evil.example lets its
 * name lead to this machine, and may then read every answer as one of its own site.
 *
 * An address and `localhost` are always accepted: no other site's name can stand for them, so a browser that sends one
 * shows this server's own page. That keeps probes by a pod's address and proxies that ask 127.0.0.1 working without a
 * setting. Paths that only programs call take any name, because they use no cookie: their credential is in a header, which
 * the page of another site does not have.
 */
import type { FastifyRequest } from 'fastify';
import { parseAddress } from '#common/ip/index.ts';
import { HttpError } from './errors.ts';

export interface HostRules {
  /** Its host is accepted. */
  publicUrl: string | null;
  /** Further accepted names. */
  names: readonly string[];
  /** The settings of both, for the refusal. */
  settings: { publicUrl: string; names: string };
  /** Paths that take any name, with all below them. */
  openPaths: readonly string[];
}

/** Asked by supervisors, load balancers and Prometheus, by any name that they know. */
export const healthPaths: readonly string[] = ['/healthz', '/readyz', '/metrics'];

const hostPattern = /^(?:\[([0-9a-f:.]+)\]|([\w.-]+))(?::\d{1,5})?$/i;

/** Whether a `Host` header is an address, `localhost`, or one of these names (in lower case). Its port does not matter. */
export function isAcceptedHost(host: string | undefined, names: ReadonlySet<string>): boolean {
  const found = hostPattern.exec(host ?? '');
  if (!found) return false;
  const name = (found[1] ?? found[2]!).toLowerCase().replace(/\.$/, '');
  return name === 'localhost' || names.has(name) || parseAddress(name) !== null;
}

/** A check for every request; throws the 421. `listensOn` is accepted too where it is a name. */
export function createHostGuard(
  listensOn: string,
  rules: HostRules | undefined,
): (request: FastifyRequest) => void {
  const publicName = rules?.publicUrl ? new URL(rules.publicUrl).hostname : listensOn;
  const names = new Set([listensOn, publicName, ...(rules?.names ?? [])].map((name) => name.toLowerCase()));
  const advice = rules
    ? `Set ${rules.settings.publicUrl} to the URL under which people reach this server, or add the name to ${rules.settings.names}.`
    : 'Use its address.';
  const isOpen = (path: string) =>
    rules?.openPaths.some((open) => path === open || path.startsWith(`${open}/`)) ?? false;
  return (request) => {
    // A trusted proxy tells the name that the browser used (X-Forwarded-Host), and that one is in links of pages.
    if (isAcceptedHost(request.headers.host, names) && isAcceptedHost(request.host, names)) return;
    if (isOpen(request.routeOptions.url ?? request.url.split('?', 1)[0]!)) return;
    const message = `This server does not answer under this host name. ${advice}`;
    throw new HttpError(421, { code: 'misdirected_request', message });
  };
}
