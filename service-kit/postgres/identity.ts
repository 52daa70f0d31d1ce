/**
 * Whom the embedded PostgreSQL runs as.
 *
 * A program that is not root is that user itself. For root, which PostgreSQL refuses, there is a system user of its own
 * that nothing else runs as. It has no capability, also no ambient one, and can gain none.
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { findOrMakeUser, type SystemUser } from '#common/system-users/index.ts';

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
