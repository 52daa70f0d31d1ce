/**
 * Storage for rows of a long capture that do not fit into memory: a temporary file without a name, created for the
 * first page.
 *
 * The file is unlinked at once, so that nothing remains after any end of the process. When it can not be created or the
 * disk is full, pages stay in memory.
 */
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pageBytes } from '#sensor/capture/index.ts';

export type TemporaryPages = ReturnType<typeof createPageFile>;

/** Stores pages in the directory of temporary files. */
export function createPageFile(folder: string = tmpdir()) {
  const kept = new Map<number, Uint8Array>();
  let descriptor = -1;
  let pages = 0;
  let problem: string | null = null;

  function open(): number {
    const path = join(folder, `svc-read-${process.pid}-${process.hrtime.bigint()}`);
    const opened = openSync(path, 'wx+', 0o600);
    unlinkSync(path);
    return opened;
  }

  function store(page: Uint8Array, number: number): void {
    if (descriptor < 0) descriptor = open();
    for (let at = 0; at < pageBytes; ) {
      at += writeSync(descriptor, page, at, pageBytes - at, number * pageBytes + at);
    }
  }

  return {
    /** Why pages stay in memory, as a sentence, or null. */
    get problem(): string | null {
      return problem;
    },
    write(page: Uint8Array): number {
      const number = pages;
      pages += 1;
      try {
        if (problem === null) store(page, number);
      } catch (error) {
        const { code } = error as NodeJS.ErrnoException;
        problem = `no room for temporary rows in ${folder} (${code ?? 'unknown error'}): memory is used instead.`;
      }
      if (problem !== null) kept.set(number, page.slice());
      return number;
    },
    read(number: number, into: Uint8Array) {
      const page = kept.get(number);
      if (page) {
        into.set(page);
        return;
      }
      for (let at = 0; at < pageBytes; ) {
        const got = readSync(descriptor, into, at, pageBytes - at, number * pageBytes + at);
        if (got === 0) throw new Error('a page of the temporary file is truncated');
        at += got;
      }
    },
    close() {
      if (descriptor >= 0) closeSync(descriptor);
      descriptor = -1;
    },
  };
}
