import { randomBytes } from 'node:crypto';
import {
  digestSecret,
  mintCredential,
  parseCredential,
  readBearer,
  secretMatches,
} from '#service-kit/credentials/index.ts';

/** What a naive reader makes of a token: JavaScript's limit drops the rest. */
function splitNaively(token: string): { id: string; secret: string } {
  const [, id = '', secret = ''] = token.split('_', 3);
  return { id, secret };
}

/** G3: every token comes apart into what it was made of; `naiveFailures` counts those that a plain split breaks. */
export function proveRoundTrips(n: number): { tried: number; failures: number; naiveFailures: number } {
  let [failures, naiveFailures] = [0, 0];
  for (let i = 0; i < n; i += 1) {
    const { id, secret, token } = mintCredential('svc');
    const parsed = parseCredential('svc', token);
    if (parsed?.id !== id || parsed.secret !== secret) failures += 1;
    if (splitNaively(token).secret !== secret) naiveFailures += 1;
  }
  // Secrets of every number of underscores, which minting hardly ever makes.
  for (let underscores = 0; underscores <= 43; underscores += 1) {
    const secret = '_'.repeat(underscores).padEnd(43, 'A');
    const parsed = parseCredential('svc', `svc_abcdefgh01234567_${secret}`);
    if (parsed?.secret !== secret) failures += 1;
  }
  return { tried: n + 44, failures, naiveFailures };
}

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Other spellings of `Bearer <token>` that a careless reader would take for it. */
function* respell(id: string, secret: string): Generator<string> {
  const last = alphabet.indexOf(secret.at(-1)!);
  // The last character carries four bits: three others decode to the same bytes.
  for (let low = 0; low < 4; low += 1) {
    const other = alphabet[(last & ~3) | low]!;
    if (other !== secret.at(-1)) yield `Bearer svc_${id}_${secret.slice(0, -1)}${other}`;
  }
  const token = `svc_${id}_${secret}`;
  for (const tail of ['=', '==', ' ', '\t', '\0', '%00', 'A', '_', '\u200b', `,Bearer ${token}`])
    yield `Bearer ${token}${tail}`;
  for (const head of [' ', '\t', '\0', '=', '\u00a0']) yield `Bearer ${head}${token}`;
  yield `Bearer  ${token}`;
  yield `Bearer\t${token}`;
  yield `Bearer${token}`;
  yield `Bearer ${token.replaceAll('_', '-')}`;
  yield `Bearer ${token.toUpperCase()}`;
  yield `Bearer SVC_${id}_${secret}`;
  yield `Bearer svc_${id.toUpperCase()}_${secret}`;
  yield `Bearer svc__${id}_${secret}`;
  yield `Bearer svc_${id}__${secret}`;
  yield `Bearer svc_${id} _${secret}`;
  yield `Bearer \u0455vc_${id}_${secret}`;
  yield `Bearer ${token}${'x'.repeat(100_000)}`;
  const at = (secret.charCodeAt(0) + secret.charCodeAt(1)) % 43;
  const character = secret[at]!;
  const swapped = character === character.toUpperCase() ? character.toLowerCase() : character.toUpperCase();
  if (swapped !== character) yield `Bearer svc_${id}_${secret.slice(0, at)}${swapped}${secret.slice(at + 1)}`;
  const plain = secret.replaceAll('-', '+').replaceAll('_', '/');
  if (plain !== secret) yield `Bearer svc_${id}_${plain}`;
}

/** Compares decoded bytes, which several texts share. */
function matchesDecoded(secret: string, presented: string): boolean {
  return Buffer.from(secret, 'base64url').equals(Buffer.from(presented, 'base64url'));
}

/** G4: of all spellings of a key exactly one is accepted. `decodedAccepted` counts what comparing decoded bytes would take. */
export function proveSpellings(n: number): { tried: number; accepted: number; decodedAccepted: number } {
  let [tried, accepted, decodedAccepted] = [0, 0, 0];
  while (tried < n) {
    const id = `k${randomBytes(8).toString('hex').slice(0, 15)}`;
    const { secret } = mintCredential('svc');
    const digest = digestSecret(secret);
    const isAccepted = (header: string) => {
      const token = readBearer(['Authorization', header]);
      const credential = token === null ? null : parseCredential('svc', token);
      return credential !== null && credential.id === id && secretMatches(digest, credential.secret);
    };
    if (!isAccepted(`Bearer svc_${id}_${secret}`)) throw new Error('a valid key is refused');
    for (const header of respell(id, secret)) {
      tried += 1;
      if (isAccepted(header)) accepted += 1;
      const presented = header.slice(`Bearer svc_${id}_`.length);
      if (header.startsWith(`Bearer svc_${id}_`) && matchesDecoded(secret, presented)) decodedAccepted += 1;
    }
  }
  return { tried, accepted, decodedAccepted };
}
