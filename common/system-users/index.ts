/**
 * System users that root gives up its rights for: without a home, a shell or a password, made when they are first needed.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { CodedError } from '#common/errors/index.ts';

export interface SystemUser {
  uid: number;
  gid: number;
}

/** The user of this name in `/etc/passwd`, or null. */
export function findUser(name: string): SystemUser | null {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  const entry = lines.map((line) => line.split(':')).find((fields) => fields[0] === name);
  return entry ? { uid: Number(entry[2]), gid: Number(entry[3]) } : null;
}

/** The same, made when it is missing. Throws `system.no_user` where that is not possible. */
export function findOrMakeUser(name: string, comment: string): SystemUser {
  const known = findUser(name);
  if (known) return known;
  const [command, ...words] = makeUserCommand('/etc', name, comment);
  const made = spawnSync(command!, words, { encoding: 'utf8' });
  // Another program's first start may have been faster.
  const user = findUser(name);
  if (user) return user;
  throw new CodedError(
    'system.no_user',
    `The system user ${name} can't be made (${made.stderr?.trim() || made.error?.message}). Make it with: useradd --system --user-group ${name}`,
  );
}

/**
 * Makes a system user where `folder` (`/etc`) has none, one first start at a time: `useradd` looks whether the user
 * exists before it waits for its own lock, so of two at once the second gives the user another number, and the processes
 * of the first have no name any more.
 */
export function makeUserCommand(folder: string, name: string, comment: string): string[] {
  const options = ['--system', '--user-group', '--no-create-home', '--home-dir', '/nonexistent'];
  const about = ['--shell', '/usr/sbin/nologin', '--comment', comment];
  const script = `grep -q "^${name}:" ${folder}/passwd || exec useradd "$@"`;
  return ['flock', folder, 'sh', '-c', script, 'useradd', ...options, ...about, name];
}

/**
 * The command with which root runs another one as this user: with these capabilities (such as `net_raw`) and no others,
 * also for its children, and unable to gain any.
 */
export function asUser({ uid, gid }: SystemUser, capabilities: readonly string[] = []): string[] {
  const kept = ['-all', ...capabilities.map((name) => `+${name}`)].join(',');
  return [
    '/usr/bin/setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    `--inh-caps=${kept}`,
    `--ambient-caps=${kept}`,
    `--bounding-set=${kept}`,
    // Otherwise access(2), which Node.js and SQLite call, judges without the capabilities.
    ...(capabilities.length > 0 ? ['--securebits=+no_setuid_fixup'] : []),
    '--no-new-privs',
  ];
}
