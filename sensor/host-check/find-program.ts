import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/** Path of a program, or null. Also searches sbin, because a service has a shorter PATH than a shell. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  for (const folder of folders) {
    if (folder === '') continue;
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // Not in this directory.
    }
  }
  return null;
}
