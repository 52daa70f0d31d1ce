/**
 * Which file is the spool: `spool-<n>.sqlite` with the highest n. A damaged one is followed by n + 1.
 *
 * A new file takes its place by one rename, after everything intact lies in it; a crash before that repeats the
 * salvage from the untouched old file. Write-ahead logs belong to their file's name, so none can meet another's file.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { makeFolders } from '#common/folders/index.ts';
import type { StoredText } from './spool-state.ts';

const fileShape = /^spool-(\d+)\.sqlite$/;
const damagedShape = /^damaged-spool-\d+\.sqlite/;
const companions = ['', '-wal', '-shm'];
const stateCopyName = 'spool-state.json';

export interface SpoolFile {
  path: string;
  generation: number;
}

/** The current spool file in the directory, which is made when it is missing (mode 0700). The file may not exist yet. */
export function currentSpoolFile(directory: string): SpoolFile {
  makeFolders(directory, 0o700);
  const generations = readdirSync(directory)
    .map((name) => Number(fileShape.exec(name)?.[1] ?? 0))
    .sort((a, b) => a - b);
  const generation = generations.at(-1) || 1;
  for (const older of generations) {
    if (older > 0 && older < generation) putAside(directory, older);
  }
  return { path: pathOf(directory, generation), generation };
}

/** Makes the file with mode 0600 and its name durable, so that SQLite's logs get the same mode. */
export function makeDurableFile(path: string, directory: string): void {
  const isNew = !existsSync(path);
  closeSync(openSync(path, 'a', 0o600));
  chmodSync(path, 0o600);
  if (isNew) syncDirectory(directory);
}

/** Where the file after a damaged one is built. What an interrupted salvage left there is removed. */
export function nextSpoolFile(directory: string, generation: number): { building: string; path: string } {
  const path = pathOf(directory, generation + 1);
  const building = `${path}.building`;
  for (const suffix of [...companions, '-journal']) rmSync(`${building}${suffix}`, { force: true });
  return { building, path };
}

/** Puts the built file in its place and the damaged one aside. Only the latest damaged file is kept. */
export function takeOver(
  directory: string,
  damagedGeneration: number,
  next: { building: string; path: string },
) {
  renameSync(next.building, next.path);
  syncDirectory(directory);
  putAside(directory, damagedGeneration);
}

/**
 * Keeps the state outside the file too, for the day when the file loses both of its own. Not synced, because it is
 * only a witness: one that is late or missing makes a gap longer, never shorter than what is lost.
 */
export function writeStateCopy(directory: string, { body, sha256 }: StoredText): void {
  const path = join(directory, stateCopyName);
  try {
    writeFileSync(`${path}.new`, `${Buffer.from(sha256).toString('hex')} ${body}\n`, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  } catch {
    // The disk is full or failing; what counts is in the file.
  }
}

/** The copy outside the file as it was stored, unverified. */
export function readStateCopy(directory: string): { body: unknown; sha256: unknown } | undefined {
  try {
    const text = readFileSync(join(directory, stateCopyName), 'utf8');
    return { sha256: Buffer.from(text.slice(0, 64), 'hex'), body: text.slice(65, -1) };
  } catch {
    return undefined;
  }
}

function putAside(directory: string, generation: number): void {
  for (const name of readdirSync(directory)) {
    if (damagedShape.test(name)) rmSync(join(directory, name), { force: true });
  }
  for (const suffix of companions) {
    const from = `${pathOf(directory, generation)}${suffix}`;
    if (existsSync(from)) renameSync(from, join(directory, `damaged-spool-${generation}.sqlite${suffix}`));
  }
  syncDirectory(directory);
}

function pathOf(directory: string, generation: number): string {
  return join(directory, `spool-${generation}.sqlite`);
}

function syncDirectory(directory: string): void {
  const handle = openSync(directory, 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}
