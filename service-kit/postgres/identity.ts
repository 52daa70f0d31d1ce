/**
 * Whom the embedded PostgreSQL runs as.
 *
 * A program that is not root is that user itself. For root, which PostgreSQL refuses, there is a system user of its own
 * that nothing else runs as: made at the first start, without a home, a shell or a password. It has no capability,
 * also no ambient one, and can gain none.
 */
import { spawnSync } from 'node:child_process';
import { statSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CodedError } from '#common/errors/index.ts';

/** The system user that root's servers run as. */
export const serverUser = 'svc-postgres';

export interface Identity {
  uid: number;
  gid: number;
  /** Command that changes to the identity and runs what follows it. */
  prefix: readonly string[];
}

/** Throws `postgres.no_user` where root can't make the system user. */
export async function chooseIdentity(): Promise<Identity> {
  const uid = process.getuid?.() ?? 0;
  const gid = process.getgid?.() ?? 0;
  if (uid !== 0) return { uid, gid, prefix: [] };
  const user = (await findUser()) ?? (await makeUser());
  return {
    ...user,
    prefix: [
      'setpriv',
      `--reuid=${user.uid}`,
      `--regid=${user.gid}`,
      '--clear-groups',
      '--inh-caps=-all',
      '--ambient-caps=-all',
      '--bounding-set=-all',
      '--no-new-privs',
    ],
  };
}

async function findUser(): Promise<{ uid: number; gid: number } | null> {
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  const entry = lines.find((fields) => fields[0] === serverUser);
  return entry ? { uid: Number(entry[2]), gid: Number(entry[3]) } : null;
}

/**
 * Makes the system user where `folder` (`/etc`) has none, one first start at a time: `useradd` looks whether the user
 * exists before it waits for its own lock, so of two at once the second gives the user another number, and the server of
 * the first has no name any more.
 */
export function makeUserCommand(folder: string): string[] {
  const options = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'];
  const about = ['--shell', '/usr/sbin/nologin', '--comment', 'embedded PostgreSQL of svc'];
  const script = `grep -q "^${serverUser}:" ${folder}/passwd || exec useradd "$@"`;
  return ['flock', folder, 'sh', '-c', script, 'useradd', ...options, ...about, serverUser];
}

async function makeUser(): Promise<{ uid: number; gid: number }> {
  const [command, ...words] = makeUserCommand('/etc');
  const made = spawnSync(command!, words, { encoding: 'utf8' });
  // Another program's first start may have been faster.
  const user = await findUser();
  if (user) return user;
  throw new CodedError(
    'postgres.no_user',
    `PostgreSQL must not run as root, and the system user ${serverUser} can't be made (${made.stderr?.trim() || made.error?.message}). Make it with: useradd --system --user-group ${serverUser}`,
  );
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
