/**
 * A key in a file: 32 random bytes that wrap data keys with AES-256-GCM.
 *
 * The file is made once, with mode 0600, and never changed or removed. A file that others may read is refused.
 */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, open, readFile, rm, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import { decrypt, encrypt, keyBytes } from './envelope.ts';
import type { KeyWrapper } from './key-wrapper.ts';

const prefix = 'svc-secrets-key-1:';
const about = [
  '# The key of the secrets in the database of svc. Keep a copy apart from the backups of the database:',
  '# without this file nothing opens them.',
];

export interface KeyFileOptions {
  /** Names the setting in messages. */
  setting: string;
}

export function createKeyFile(path: string, { setting }: KeyFileOptions): KeyWrapper {
  const place = `the key file ${path}`;
  return {
    place,
    prepare: () => makeKeyFile(path),
    async wrap(key, context) {
      const wrapping = await readKeyFile(path, setting);
      const wrapped = encrypt(wrapping, key, [Buffer.from(context)]).toString('base64url');
      return { wrapped, wrappedBy: fingerprint(wrapping) };
    },
    async unwrap({ wrapped, wrappedBy }, context) {
      const wrapping = await readKeyFile(path, setting);
      const found = fingerprint(wrapping);
      if (wrappedBy !== found) {
        throw new CodedError(
          'secrets.wrong_key',
          `The key file ${path} holds the key ${found}, but the secrets of this database need ${describeWrapping(wrappedBy)}. Put the right file back, or set ${setting} to where it is. Nothing was changed.`,
        );
      }
      const key = decrypt(wrapping, Buffer.from(wrapped, 'base64url'), [Buffer.from(context)]);
      if (key === null)
        throw new CodedError(
          'secrets.wrong_key',
          `A data key of the database was changed: the key file ${path} does not open it. Restore the table data_keys from a backup.`,
        );
      return key;
    },
  };
}

/** For people: which key wraps, by what is stored with a data key. */
function describeWrapping(wrappedBy: string): string {
  return wrappedBy === 'command'
    ? 'the key management command that wrapped their keys'
    : `the key ${wrappedBy}`;
}

async function readKeyFile(path: string, setting: string): Promise<Buffer> {
  let text: string;
  try {
    // Its owner may let a group read it; a key that everyone reads, or a group writes, protects nothing.
    if (((await stat(path)).mode & 0o027) !== 0)
      throw new CodedError(
        'secrets.open_key_file',
        `The key file ${path} may be read or changed by others. Run: chmod 600 ${path}`,
      );
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'secrets.open_key_file')) throw error;
    throw new CodedError(
      'secrets.no_key',
      `The key file ${path} can't be read (${describeError(error)}), and the secrets in the database can't be opened without it. Put its copy back, or set ${setting} to where it is. docs/operating/secrets-key.md says what to do when every copy is lost.`,
      {},
      error,
    );
  }
  const line = text.split('\n').find((one) => one.startsWith(prefix));
  const key = Buffer.from(line?.slice(prefix.length).trim() ?? '', 'base64url');
  if (key.length !== keyBytes)
    throw new CodedError(
      'secrets.no_key',
      `The key file ${path} holds no key: one line must start with ${prefix}. Put its copy back.`,
    );
  return key;
}

/** Leaves a file that is there as it is. What is not whole never has the file's name. */
async function makeKeyFile(path: string): Promise<void> {
  // A key that is mounted as a secret is in a folder that is read-only.
  if (existsSync(path)) return;
  const fresh = `${path}.${randomBytes(6).toString('hex')}.new`;
  try {
    makeFolders(dirname(path));
    const file = await open(fresh, 'wx', 0o600);
    try {
      await file.writeFile(
        [...about, `${prefix}${randomBytes(keyBytes).toString('base64url')}`, ''].join('\n'),
      );
      await file.sync();
    } finally {
      await file.close();
    }
    // Unlike a rename, a link never takes the place of a key that another process has just made.
    await link(fresh, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
    const folder = await open(dirname(path), 'r');
    await folder.sync().finally(() => folder.close());
  } catch (error) {
    throw new CodedError(
      'secrets.no_key',
      `The key file ${path} can't be made: ${describeError(error)}.`,
      {},
      error,
    );
  } finally {
    await rm(fresh, { force: true });
  }
}

function fingerprint(key: Buffer): string {
  const digest = createHash('sha256').update('svc secrets key').update(key).digest('hex');
  return `file:${digest.slice(0, 16)}`;
}
