/**
 * Which database a data directory belongs to. Without this a command that lacks the service's settings works on an embedded database
 * that no process serves: an operator is created who can't sign in, and a backup is empty.
 *
 * A process with a database URL leaves a note in the program's folder; there no process without one uses an embedded database.
 */
import { access, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import { makeFolders } from '#common/folders/index.ts';

const noteName = 'database-url';

/**
 * Who runs the embedded server, where no URL is set. `own`: this process; it fails where another does. `join`: another process of
 * this program, else this one. `existing`, for commands: as `join`, but only where there is a database already.
 */
export type EmbeddedUse = 'own' | 'join' | 'existing';

interface DatabaseLocation {
  program: string;
  urlSetting: string;
  url: string | null;
  programDir: string;
  embedded?: EmbeddedUse;
}

/**
 * Leaves the note, or throws `database.elsewhere` where there is one, and for a command `database.missing` where no embedded database
 * was ever started. A command at a terminal says which database it works on.
 */
export async function checkPlace({
  program,
  urlSetting,
  url,
  programDir,
  embedded,
}: DatabaseLocation): Promise<void> {
  const note = join(programDir, noteName);
  if (url !== null) await leaveNote(note, `${describe(url)} (${urlSetting})\n`);
  else {
    await refuseElsewhere({ program, urlSetting, programDir });
    const dataDir = join(programDir, 'postgres', 'data');
    if (embedded === 'existing' && !(await exists(dataDir)))
      throw new CodedError(
        'database.missing',
        `There is no database of ${program} in ${programDir}. Give this command the settings of the service (SVC_DATA_DIR or ${urlSetting}); before a first start, run: ./svc ${program} serve`,
      );
  }
  if (embedded === 'existing' && process.stderr.isTTY)
    process.stderr.write(`${program}: database ${url === null ? `in ${programDir}` : describe(url)}\n`);
}

/** Throws `database.elsewhere` where the program's folder has the note of a process with a database URL. */
export async function refuseElsewhere({
  program,
  urlSetting,
  programDir,
}: Pick<DatabaseLocation, 'program' | 'urlSetting' | 'programDir'>): Promise<void> {
  const note = join(programDir, noteName);
  const place = await readFile(note, 'utf8').catch(() => null);
  if (place === null) return;
  throw new CodedError(
    'database.elsewhere',
    `The database of ${program} is ${place.trim()}, and ${urlSetting} is not set. Give it the value that the service has, as svc-admin does; to go on with an embedded database, delete ${note}.`,
  );
}

/** A folder that can't be written has no embedded database either. */
async function leaveNote(note: string, text: string): Promise<void> {
  if ((await readFile(note, 'utf8').catch(() => null)) === text) return;
  try {
    makeFolders(join(note, '..'));
    await writeFile(note, text);
  } catch {}
}

/** Host and name of the database, without the password. */
function describe(url: string): string {
  try {
    const { host, pathname, searchParams } = new URL(url);
    return `${host || searchParams.get('host') || 'localhost'}${pathname}`;
  } catch {
    return 'a PostgreSQL server';
  }
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
