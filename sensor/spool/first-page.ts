/**
 * Makes a file readable again whose first page is damaged: the header and the list of tables.
 *
 * Every spool has the same tables made in the same order, so a fresh file's first page fits any of them. Only reading
 * is done with it: the list of free pages is dropped.
 */
import { closeSync, copyFileSync, existsSync, openSync, readSync, writeSync } from 'node:fs';

const pageBytes = 4096;
/** Header fields: first free page and their number; when these are 0 nothing else refers to free pages. */
const freePagesAt = 32;
/** `version-valid-for` differing from the change counter makes SQLite take the file's size for the truth. */
const versionValidForAt = 92;

/** Copies `damaged` and its log to `copy`, with the first page of the file at `fresh`. */
export function copyWithFirstPage(damaged: string, fresh: string, copy: string): void {
  copyFileSync(damaged, copy);
  if (existsSync(`${damaged}-wal`)) copyFileSync(`${damaged}-wal`, `${copy}-wal`);
  const page = Buffer.alloc(pageBytes);
  const from = openSync(fresh, 'r');
  readSync(from, page, 0, pageBytes, 0);
  closeSync(from);
  page.fill(0, freePagesAt, freePagesAt + 8);
  page.writeUInt32BE((page.readUInt32BE(24) + 1) >>> 0, versionValidForAt);
  const to = openSync(copy, 'r+');
  writeSync(to, page, 0, pageBytes, 0);
  closeSync(to);
}
