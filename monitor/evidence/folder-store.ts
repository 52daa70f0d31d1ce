/** Capture files in a folder: written beside, synced, then renamed, so that a file is whole or absent. */
import { randomUUID } from 'node:crypto';
import { constants, existsSync } from 'node:fs';
import { access, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { makeFolders } from '#common/folders/index.ts';
import { full, type ObjectStore, unavailable } from './object-store.ts';

const isAbsent = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT';

export function createFolderStore(folder: string): ObjectStore {
  const place = `the folder ${folder}`;
  const guarded = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const { code = 'unknown error' } = error as NodeJS.ErrnoException;
      throw code === 'ENOSPC' || code === 'EDQUOT' ? full(place) : unavailable(place, code, error);
    }
  };
  return {
    place,
    put: (key, bytes) =>
      guarded(async () => {
        const path = join(folder, key);
        makeFolders(dirname(path), 0o700);
        const beside = `${path}.${randomUUID()}.part`;
        try {
          await writeSynced(beside, bytes);
          await rename(beside, path);
          await syncFolder(dirname(path));
        } catch (error) {
          await rm(beside, { force: true }).catch(() => {});
          throw error;
        }
      }),
    get: (key) =>
      guarded(async () => {
        try {
          return await readFile(join(folder, key));
        } catch (error) {
          if (isAbsent(error)) return null;
          throw error;
        }
      }),
    remove: (key) =>
      guarded(async () => {
        const path = join(folder, key);
        // A folder that is gone is a disk that is not mounted, and no proof that the file is gone.
        await access(folder);
        const names = await readdir(dirname(path)).catch((error) => {
          if (isAbsent(error)) return [];
          throw error;
        });
        const own = names.filter((name) => name === basename(path) || name.startsWith(`${basename(path)}.`));
        for (const name of own) await rm(join(dirname(path), name), { force: true });
        if (own.length > 0) await syncFolder(dirname(path));
      }),
    check: () =>
      guarded(async () => {
        // The first file makes the folder.
        if (existsSync(folder)) await access(folder, constants.W_OK | constants.X_OK);
      }),
  };
}

async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(bytes);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
