/** Paths of single sign-on, the same in both programs, and what may stand in their queries. */
import { createHash } from 'node:crypto';

/** At the receiver: `?to=PATH`. The link of the other program. */
export const beginPath = '/sign-on';
/** At the issuer: `?audience=KEY_ID&state=STATE&to=PATH`. Where the receiver sends a browser without a session. */
export const askPath = '/sign-on/ask';
/** At the receiver: a form with the field `assertion`. Where the issuer's page posts. */
export const answerPath = '/sign-on/answer';

const targetLengthMax = 2_000;

/** Where a link of the other program leads. `address` is that program's. */
export function beginUrl(address: string, path: string): string {
  return `${address}${beginPath}?to=${encodeURIComponent(path)}`;
}

/**
 * True for a path of the receiver to which a sign-on may lead: absolute, of this server, in visible ASCII, and not a
 * step of signing on or out itself. `//host`, `/\host` and everything that a browser would read as another server are none.
 */
export function isTargetPath(path: string): boolean {
  if (path.length > targetLengthMax || !/^\/(?!\/)[\x21-\x7e]*$/.test(path) || path.includes('\\'))
    return false;
  // As a browser resolves it: dots and percent signs must not lead elsewhere either.
  const url = URL.parse(path, 'http://receiver.invalid');
  if (url === null || url.origin !== 'http://receiver.invalid' || url.pathname.startsWith('//')) return false;
  return !/^\/sign-(on|in|out)(\/|$)/.test(url.pathname);
}

/**
 * What the receiver asks the issuer to sign for this browser: SHA-256 over the browser's secret, a line feed and the path,
 * in base64url. It binds the assertion to the browser and to the path, and does not tell the secret.
 */
export function stateOf(secret: string, path: string): string {
  return createHash('sha256').update(`${secret}\n${path}`).digest('base64url');
}

export const isStateText = (text: string): boolean => /^[A-Za-z0-9_-]{43}$/.test(text);
