/** What wraps data keys: it holds a key that is not in the database. */

import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { link, open, readFile, rm, stat } from 'node:fs/promises';
import { dirname, resolve, sep } from 'node:path';
import { text } from 'node:stream/consumers';
import { CodedError, describeError, hasCode } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';
import { decrypt, encrypt, keyBytes } from './envelope.ts';

export interface WrappedKey {
  wrapped: string;
  /** Which key wraps it. */
  wrappedBy: string;
}

export interface KeyWrapper {
  /** Where the key is, for messages, such as `the key file /var/lib/svc-monitor/monitor/secrets.key`. */
  readonly place: string;
  /** Makes the key where there is none. Called only for a database that has no data key yet. */
  prepare(): Promise<void>;
  /** `context` names the data key; what was wrapped for one context is not unwrapped for another. */
  wrap(key: Buffer, context: string): Promise<WrappedKey>;
  /** Throws `secrets.no_key` where the key is not there, and `secrets.wrong_key` where it is another one. */
  unwrap(wrapped: WrappedKey, context: string): Promise<Buffer>;
}

interface KeyWrapperOptions {
  /** `SVC_MONITOR_SECRETS_KEY`: the settings are its names with `_FILE` and `_COMMAND`. */
  settingPrefix: string;
  file: string | null;
  command: string | null;
  /** The program's own folder: holds `secrets.key` where neither setting is set, and the embedded database's folder. */
  programDir: string;
}

/** Throws `config.invalid` for two keys, and for a key file that would be copied with the database. */
export function createKeyWrapper(options: KeyWrapperOptions): KeyWrapper {
  const { settingPrefix, programDir } = options;
  // A setting that is set to nothing is not set.
  const file = options.file || null;
  const command = options.command || null;
  if (command !== null) {
    if (file !== null)
      throw new CodedError(
        'config.invalid',
        `${settingPrefix}_FILE and ${settingPrefix}_COMMAND are two places for one key: set one of them.`,
      );
    return createKeyCommand(command);
  }
  const path = resolve(file ?? `${programDir}/secrets.key`);
  const databaseDir = resolve(programDir, 'postgres');
  if (path.startsWith(databaseDir + sep))
    throw new CodedError(
      'config.invalid',
      `${settingPrefix}_FILE must not lie in the database's folder ${databaseDir}: a copy of the database would hold its key.`,
    );
  return createKeyFile(path, { setting: `${settingPrefix}_FILE` });
}

// A key management service, reached by a program that the operator names.
//
// `PROGRAM … wrap` gets a data key in Base64 on standard input and answers with one line of text, the wrapped key;
// `PROGRAM … unwrap` gets that line and answers with the data key in Base64. The key that wraps never comes here.

const timeoutMs = 30_000;
const wrappedMax = 16_384;

/** `commandLine` is split at spaces; no shell reads it. */
function createKeyCommand(commandLine: string): KeyWrapper {
  const [program = '', ...args] = commandLine.split(/\s+/).filter((part) => part !== '');
  const ask = (verb: 'wrap' | 'unwrap', input: string) => run(program, [...args, verb], input);
  return {
    place: `the key command ${program}`,
    prepare: async () => {},
    async wrap(key) {
      const wrapped = await ask('wrap', key.toString('base64'));
      if (wrapped === '' || wrapped.length > wrappedMax || wrapped.includes('\n'))
        throw fault(`${program} wrap must answer with one line of at most ${wrappedMax} characters`);
      return { wrapped, wrappedBy: 'command' };
    },
    async unwrap({ wrapped, wrappedBy }) {
      if (wrappedBy !== 'command')
        throw new CodedError(
          'secrets.wrong_key',
          `The secrets of this database need the key ${wrappedBy} of a key file, not ${program}. Unset the key command, or change to it with rewrap-secrets-key. Nothing was changed.`,
        );
      const key = Buffer.from(await ask('unwrap', wrapped), 'base64');
      if (key.length !== keyBytes)
        throw fault(`${program} unwrap must answer with ${keyBytes} bytes in Base64`);
      return key;
    },
  };
}

async function run(program: string, args: readonly string[], input: string): Promise<string> {
  const child = spawn(program, args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  // A program that does not read its input closes the pipe early; its exit code tells.
  child.stdin.on('error', () => {});
  child.stdin.end(`${input}\n`);
  const ended = new Promise<string | null>((done) => {
    child.once('error', (error) => done(error.message));
    child.once('close', (code, signal) =>
      done(code === 0 ? null : `it ended with ${signal === null ? `exit code ${code}` : signal}`),
    );
  });
  const [output, said, failure] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (failure === null) return output.trim();
  const words = said.trim().slice(-300);
  throw fault(`${program} ${args.at(-1)} failed: ${failure}${words === '' ? '' : ` (${words})`}`);
}

function fault(what: string): CodedError {
  return new CodedError(
    'secrets.no_key',
    `The key of the secrets in the database is not to be had: ${what}. Nothing was changed.`,
  );
}

// A key in a file: 32 random bytes that wrap data keys with AES-256-GCM.
//
// The file is made once, with mode 0600, and never changed or removed. A file that others may read is refused.

const prefix = 'svc-secrets-key-1:';
const about = [
  '# The key of the secrets in the database of svc. Keep a copy apart from the backups of the database:',
  '# without this file nothing opens them.',
];

export interface KeyFileOptions {
  /** Names the setting in messages. */
  setting: string;
}

function createKeyFile(path: string, { setting }: KeyFileOptions): KeyWrapper {
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
