/** The guests' definitions on disk, as a hypervisor keeps its machines: the next start of the world makes them again. */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { CodedError } from '#common/errors/index.ts';
import type { GuestDefinition } from './guest.ts';
import { defineGuest, type GuestInput } from './guest-definition.ts';

/** A definition on disk. Version 0.1.0 and older wrote `cards` for `nics`. */
type StoredGuest = GuestInput & { cards?: GuestInput['nics'] };

/** Reads all definitions; none where there is no file. Throws `lab.guests_unreadable`. */
export function readGuestFile(path: string): GuestDefinition[] {
  if (!existsSync(path)) return [];
  try {
    const stored = JSON.parse(readFileSync(path, 'utf8')) as StoredGuest[];
    return stored.map(({ cards, ...guest }) => defineGuest({ ...guest, nics: guest.nics ?? cards ?? [] }));
  } catch (error) {
    const message = `${path} can't be read (${(error as Error).message}). Remove it to start without guests`;
    throw new CodedError('lab.guests_unreadable', message, {}, error);
  }
}

/** Replaces the file; after it returns, the definitions survive a crash. */
export function writeGuestFile(path: string, guests: readonly GuestDefinition[]): void {
  writeFileDurably(path, `${JSON.stringify(guests, null, 2)}\n`);
}

/** Writes by rename with mode 0600, data and folder flushed. */
export function writeFileDurably(path: string, text: string): void {
  const file = openSync(`${path}.new`, 'w', 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(`${path}.new`, path);
  const folder = openSync(dirname(path), 'r');
  fsyncSync(folder);
  closeSync(folder);
}
