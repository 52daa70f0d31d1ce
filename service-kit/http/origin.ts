import { randomBytes } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { formatAddress, parseAddress } from '#common/ip/index.ts';
import { HttpError } from './errors.ts';

/** From where a request came, for the audit trail and the log. */
export interface RequestOrigin {
  /** The client's address; behind a trusted proxy the one that the proxy names. */
  readonly address: string;
  readonly requestId: string;
}

/** The origin of this request; guards put it on the actor that they make. */
export function originOf(request: Pick<FastifyRequest, 'ip' | 'id'>): RequestOrigin {
  return { address: request.ip, requestId: request.id };
}

/** The throttling bucket of a source address: the address itself for IPv4, its /64 for IPv6. */
export function sourceBucket(address: string): string {
  const plain = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
  const bytes = parseAddress(plain);
  if (!bytes) return plain;
  if (bytes.length === 4) return formatAddress(bytes);
  const prefix = new Uint8Array(16);
  prefix.set(bytes.subarray(0, 8));
  return `${formatAddress(prefix)}/64`;
}

/** Whether an address is of this machine itself. */
export function isLoopback(address: string): boolean {
  return address === '::1' || /^(::ffff:)?127\./.test(address);
}

const crockford = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/** `req_` and a ULID: 26 characters that sort by time. */
export function newRequestId(nowMs: number = Date.now()): string {
  let time = '';
  for (let rest = nowMs, i = 0; i < 10; i += 1) {
    time = crockford[rest % 32]! + time;
    rest = Math.floor(rest / 32);
  }
  let random = '';
  for (const byte of randomBytes(16)) random += crockford[byte & 31];
  return `req_${time}${random}`;
}

// Refuses requests whose `Host` is not a name of this server (421), against DNS rebinding: a page of evil.example lets its
// name lead to this machine, and may then read every answer as one of its own site.
//
// An address and `localhost` are always accepted: no other site's name can stand for them, so a browser that sends one
// shows this server's own page. That keeps probes by a pod's address and proxies that ask 127.0.0.1 working without a
// setting. Paths that only programs call take any name, because they use no cookie: their credential is in a header, which
// the page of another site does not have.

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
