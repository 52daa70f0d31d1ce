/** Where the API is, and the key: from the environment, else from a file that only its owner reads. */
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { UsageError } from './arguments.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Config {
  url?: string | undefined;
  key?: string | undefined;
  tenant?: string | undefined;
}

/** `SVCCTL_CONFIG`, else `svcctl.json` in the user's folder of settings. */
export function configPath(env: Environment): string {
  const folder = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config');
  return env.SVCCTL_CONFIG || join(folder, 'svcctl.json');
}

/** The environment goes first. Throws a `UsageError` for a file that others may read or that holds no settings. */
export function readConfig(env: Environment): Config {
  const { SVCCTL_URL: url, SVCCTL_KEY: key, SVCCTL_TENANT: tenant } = env;
  const file = url && key ? {} : readFile(configPath(env));
  return { url: url || file.url, key: key || file.key, tenant: tenant || file.tenant };
}

function readFile(path: string): Config {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return {};
  if (process.platform !== 'win32' && (found.mode & 0o077) !== 0)
    throw new UsageError(`others may read ${path}, which holds a key: chmod 600 ${path}`);
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Config;
  } catch {
    throw new UsageError(`${path} is not valid JSON`);
  }
}

/** Writes the file anew, for its owner only. */
export function writeConfig(env: Environment, config: Config): string {
  const path = configPath(env);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, '', { mode: 0o600 });
  chmodSync(path, 0o600);
  writeFileSync(path, `${JSON.stringify(config, null, 2)}\n`);
  return path;
}
