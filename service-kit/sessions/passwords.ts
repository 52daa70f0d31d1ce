/** Passwords as argon2id (RFC 9106, 19 MiB, 2 passes: OWASP's recommendation), stored as a PHC string. */
import { argon2, randomBytes, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify(argon2);
/** Memory in KiB and passes over it; `testing/cheap-passwords.ts` alone changes them. */
export const cost = { memory: 19_456, passes: 2, parallelism: 1 };
const tagLength = 32;

/** The PHC string of a new password. */
export async function hashPassword(password: string): Promise<string> {
  const nonce = randomBytes(16);
  const tag = await derive('argon2id', { message: password, nonce, tagLength, ...cost });
  const parameters = `m=${cost.memory},t=${cost.passes},p=${cost.parallelism}`;
  return `$argon2id$v=19$${parameters}$${unpadded(nonce)}$${unpadded(tag)}`;
}

let unknownHash: Promise<string> | null = null;

/** True for the right password. With `stored` null (unknown email) it does the same work and returns false. */
export async function verifyPassword(stored: string | null, password: string): Promise<boolean> {
  unknownHash ??= hashPassword('unknown');
  const match = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)\$([^$]+)\$([^$]+)$/.exec(
    stored ?? (await unknownHash),
  );
  if (!match) return false;
  const [, memory, passes, parallelism, nonce, tag] = match;
  const expected = Buffer.from(tag!, 'base64');
  const given = await derive('argon2id', {
    message: password,
    nonce: Buffer.from(nonce!, 'base64'),
    tagLength: expected.length,
    memory: Number(memory),
    passes: Number(passes),
    parallelism: Number(parallelism),
  });
  return timingSafeEqual(given, expected) && stored !== null;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replace(/=+$/, '');
}
