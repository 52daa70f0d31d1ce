/**
 * Makes folders, and shares the disk with a lesser user where the program is root.
 *
 * The owner of a folder decides what its names stand for: the name of a file may be a link to any other by the time root
 * uses it. So root keeps the folders above what it gives away, gives away only what no other user can exchange meanwhile,
 * follows no link, and leaves the work inside a lesser user's folder to a process of that user (`spawnInside`).
 */
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process';
import { lchownSync, lstatSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { asUser, type SystemUser } from '#common/system-users/index.ts';

/**
 * Makes a folder and those above it, like `mkdir -p`. Throws what the last `mkdir` said. Folders that are there already
 * keep their mode.
 *
 * Node's own `recursive` never returns where the kernel answers ENOENT to every mkdir, as below /proc, so a mistyped
 * data directory would hang the program instead of being said.
 */
export function makeFolders(path: string, mode = 0o755): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST' && statSync(path).isDirectory()) return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    makeFolders(dirname(path));
    mkdirSync(path, { mode });
  }
}

/**
 * Makes a folder (0700) of this user. The folder above must be one whose entries no other user can exchange: the program's
 * own, or a sticky one. Returns false where a link, a file or the folder of another user has the name.
 */
export function makeFolderOf(path: string, { uid, gid }: SystemUser): boolean {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const facts = lstatSync(path);
  if (!facts.isDirectory()) return false;
  if (facts.uid === uid) return true;
  // Just made, or by a start that was killed right here.
  if (facts.uid !== process.getuid?.()) return false;
  lchownSync(path, uid, gid);
  return true;
}

/**
 * Gives a folder, with everything in it that its owner has, to another user; the folder itself last, so that a hand-over
 * that was cut off is begun again. Node's calls name each file by its path, which the present owner may exchange on the
 * way; `chown` goes from open folder to open folder. What others have there, perhaps by a hard link, stays theirs.
 */
export function giveTree(path: string, { uid, gid }: SystemUser): void {
  const owner = lstatSync(path).uid;
  if (owner !== uid) run('/bin/chown', ['-R', '-P', '-h', `--from=${owner}`, `${uid}:${gid}`, '--', path]);
}

/** Removes the file, link or folder of this name: of a link the link alone, of a folder everything, as carefully as `giveTree`. */
export function removeTree(path: string): void {
  run('/bin/rm', ['-rf', '--', path]);
}

function run(program: string, words: readonly string[]): void {
  const { error, status, stderr } = spawnSync(program, words, { encoding: 'utf8' });
  if (error) throw error;
  if (status !== 0) throw new Error(`${program} failed: ${stderr.trim()}`);
}

/**
 * Runs a command in a folder as the folder's owner, where root calls it: no link in there leads it to what its owner
 * can't reach. Of this process's environment it gets the PATH alone, because the owner can read its environment.
 */
export function spawnInside(folder: string, command: readonly string[], options: SpawnOptions): ChildProcess {
  const { uid, gid } = statSync(folder);
  const prefix = process.getuid?.() === 0 && uid !== 0 ? asUser({ uid, gid }) : [];
  const [program, ...words] = [...prefix, ...command];
  const env = { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', TZ: 'UTC', ...options.env };
  return spawn(program!, words, { ...options, cwd: folder, env });
}
