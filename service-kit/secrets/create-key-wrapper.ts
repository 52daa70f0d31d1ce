import { resolve, sep } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import { createKeyCommand } from './key-command.ts';
import { createKeyFile } from './key-file.ts';
import type { KeyWrapper } from './key-wrapper.ts';

export interface KeyWrapperOptions {
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
