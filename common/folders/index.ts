/**
 * Makes a folder and those above it, like `mkdir -p`.
 *
 * Node's own `recursive` never returns where the kernel answers ENOENT to every mkdir, as below /proc, so a mistyped
 * data directory would hang the program instead of being said.
 */
import { mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** Throws what the last `mkdir` said. Folders that are there already keep their mode. */
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
