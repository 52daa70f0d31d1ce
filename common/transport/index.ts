/**
 * The rule for secrets on the wire between the programs: https, or http that does not leave the machine.
 *
 * `SVC_ALLOW_INSECURE_HTTP=1` is the only exception, for networks that carry nothing but svc, such as a lab's.
 */
import { booleanSetting } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';

/** The same setting in all three programs. */
export const allowInsecureHttpSetting = booleanSetting(
  'SVC_ALLOW_INSECURE_HTTP',
  false,
  'Credentials and signed messages may also go to http addresses of other machines, readable by everything on the way; for lab and demo worlds.',
);

/** True for https, and for http to this machine itself. */
export function isPrivateTransport(url: string): boolean {
  const parsed = URL.parse(url);
  if (!parsed) return false;
  return parsed.protocol === 'https:' || (parsed.protocol === 'http:' && isLoopback(parsed.hostname));
}

/** True for http and https to this machine itself, by any spelling of its loopback. */
export function staysOnMachine(url: string): boolean {
  const parsed = URL.parse(url);
  return parsed !== null && /^https?:$/.test(parsed.protocol) && isLoopback(parsed.hostname);
}

/** Throws `transport.insecure`, which says what to do, when a secret must not travel to this URL. */
export function requirePrivateTransport(url: string, options: { isAllowed: boolean; advice: string }): void {
  if (options.isAllowed || isPrivateTransport(url)) return;
  throw new CodedError(
    'transport.insecure',
    `${url} is not encrypted, so secrets are not sent to it. ${options.advice}`,
  );
}

/** `URL` has made every spelling of an IPv4 address canonical by now. */
function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}

/**
 * Why a request got no answer, in words of ours: what another server wrote, such as the names in its certificate, is never stored
 * or shown.
 */
const authority =
  'its certificate is of an unknown authority; to trust an authority of your own, set NODE_EXTRA_CA_CERTS to the file with its certificate';

const reasons: Readonly<Record<string, string>> = {
  SELF_SIGNED_CERT_IN_CHAIN: authority,
  DEPTH_ZERO_SELF_SIGNED_CERT: authority,
  UNABLE_TO_GET_ISSUER_CERT: authority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: authority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: authority,
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet; check the clocks of both machines',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is of another host name',
  ERR_SSL_WRONG_VERSION_NUMBER: 'it does not speak TLS at this address; for http, change the URL',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'it does not speak TLS at this address; for http, change the URL',
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the connection was closed',
  UND_ERR_SOCKET: 'the connection was closed',
  ENOTFOUND: 'its name does not resolve',
  EAI_AGAIN: 'its name does not resolve now',
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no route to it',
  ETIMEDOUT: 'no connection in time',
  UND_ERR_CONNECT_TIMEOUT: 'no connection in time',
};

/** One phrase for an error of `fetch` or of a socket: `its certificate has expired`. */
export function describeTransportFailure(error: unknown): string {
  const { name, code, cause } = (error ?? {}) as { name?: string; code?: unknown; cause?: unknown };
  if (name === 'TimeoutError' || name === 'AbortError') return 'no answer in time';
  if (typeof code === 'string' && reasons[code]) return reasons[code];
  if (error instanceof AggregateError && error.errors.length > 0)
    return describeTransportFailure(error.errors[0]);
  if (cause) return describeTransportFailure(cause);
  if (typeof code !== 'string' || !/^[A-Z_0-9]{3,60}$/.test(code)) return 'the connection failed';
  return /^(CERT|ERR_TLS|ERR_SSL|EPROTO)/.test(code)
    ? `TLS failed (${code})`
    : `the connection failed (${code})`;
}
