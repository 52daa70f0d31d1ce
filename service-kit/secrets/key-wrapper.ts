/** What wraps data keys: it holds a key that is not in the database. */

import { resolve, sep } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import { createKeyCommand } from './key-command.ts';
import { createKeyFile } from './key-file.ts';

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
