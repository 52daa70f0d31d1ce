import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

/** Where a program lies, null when it is not there. A service has a shorter PATH than a shell, so sbin is looked at too. */
export function findProgram(name: string): string | null {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/bin', '/sbin', '/bin'];
  for (const folder of folders) {
    if (folder === '') continue;
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // Not here.
    }
  }
  return null;
}
