/**
 * The rule for secrets on the wire between the programs: https, or http that does not leave the machine.
 *
 * `SVC_ALLOW_INSECURE_HTTP=1` is the only exception, for networks that carry nothing but svc, such as a lab's.
 */
import { booleanSetting } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';

export { describeTransportFailure } from './describe-failure.ts';

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
