/**
 * Prints what the engine finds in capture files, as tables for people or as JSON for programs.
 *
 * Readable parts go to the output with exit code 0, and problems are reported as sentences. Exit code 2 means that a
 * file is not a capture, that no link type is supported, or that options are invalid.
 */

import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { WriteStream } from 'node:tty';
import { pageBytes, type ReadingResult } from '#sensor/capture/index.ts';
import { type CaptureFile, NotACaptureError, openCaptureFile } from '#sensor/capture-files/index.ts';
import { AnswerLog } from './answer-log.ts';
import { isFiltered, matchesAnswer, matchesUsage, type Selection, selectRows } from './read-filter.ts';
import { type FileFacts, FrameReading, MinuteSums, packetsIn } from './read-frames.ts';
import { parseQuery, type ReadOptions } from './read-query.ts';
import { OutputClosedError, type TextLook, type TextOutput } from './text-output.ts';

/** Output of a reading and of its messages. */
export interface ReadScreen {
  out: TextOutput;
  look: TextLook;
  /** Shows the progress of long readings; null without a terminal. */
  terminal: Pick<WriteStream, 'write'> | null;
  complain(sentence: string): void;
}

/** Reads the files as one capture, prints the findings and returns the exit code. */
export async function readFiles(paths: readonly string[], options: ReadOptions, screen: ReadScreen) {
  const pages = createPageFile();
  try {
    const query = parseQuery(options);
    // The writer is loaded before reading starts, and only the one that is needed.
    const write = options.json
      ? (await import('./read-json.ts')).writeJson
      : (await import('./read-tables.ts')).tablesWriter(query, screen.look);
    const captures = await findInOrder(paths, screen.complain);
    const progress = createProgress(screen.terminal);
    // A table shows the first answers, unless they are sorted by name.
    const isCut = !options.json && query.top > 0 && query.sort !== 'name';
    const answers = new AnswerLog(pages, isCut ? query.top : Number.POSITIVE_INFINITY);
    const minutes = options.minutes ? new MinuteSums() : null;
    const hasFilter = isFiltered(query);
    const packetsMax = captures.reduce((sum, capture) => sum + packetsIn(capture), 0);
    const reading = new FrameReading(packetsMax, {
      local: query.local,
      from: query.from,
      to: query.to,
      minutes,
      pageFile: pages,
      onProgress: progress?.show,
      onAnswer: (answer) => {
        if (!hasFilter || matchesAnswer(answer.make(), query)) answers.add(answer);
      },
      countsUsage: hasFilter ? (usage) => matchesUsage(usage, query) : undefined,
    });
    for (const { path, open } of captures) {
      reading.read({ path, file: open() });
      if (captures.length > 1) await nextTurn();
    }
    const { facts, result, problems } = reading.finish();
    progress?.clear();
    write(screen.out, { facts, result, selection: selectRows(result, query), answers, minutes });
    screen.out.end();
    if (pages.problem !== null) problems.push(pages.problem);
    for (const problem of problems) screen.complain(problem);
    return 0;
  } catch (error) {
    // A reader like `head` that closes the pipe is not an error.
    if (error instanceof OutputClosedError) return 0;
    if (!(error instanceof NotACaptureError)) throw error;
    screen.complain(error.message);
    return 2;
  } finally {
    pages.close();
  }
}

/** A file that is a capture. */
interface FoundCapture extends Pick<CaptureFile, 'size'> {
  path: string;
  /** Call once. */
  open(): CaptureFile;
}

/**
 * Looks at the files and puts the one with the earliest first packet first, because the file names of a split capture do
 * not sort reliably. Of several files, unreadable ones are reported and left out. Each is opened only to be read, since an
 * open file holds memory, and a compressed one a thread.
 */
async function findInOrder(
  paths: readonly string[],
  complain: ReadScreen['complain'],
): Promise<FoundCapture[]> {
  if (paths.length === 1) {
    const file = openCaptureFile(paths[0]!);
    return [{ path: paths[0]!, size: file.size, open: () => file }];
  }
  const found: (FoundCapture & { at: number })[] = [];
  let failure: NotACaptureError | null = null;
  for (const path of paths) {
    try {
      if (path === '-')
        throw new NotACaptureError('- (standard input) can not be combined with other files.');
      const { size, at } = lookAt(openCaptureFile(path));
      found.push({ path, size, at, open: () => openCaptureFile(path) });
    } catch (error) {
      if (!(error instanceof NotACaptureError)) throw error;
      if (failure) complain(failure.message);
      failure = error;
    }
    await nextTurn();
  }
  if (failure && found.length === 0) throw failure;
  if (failure) complain(failure.message);
  return found.sort((a, b) => a.at - b.at);
}

/** Size of a file, and the time of its first packet. */
function lookAt(file: CaptureFile): { size: number; at: number } {
  const { size } = file;
  try {
    return { size, at: file.next() ? file.seconds + file.nanoseconds / 1e9 : Number.POSITIVE_INFINITY };
  } finally {
    file.close();
  }
}

/** The memory of a closed file's thread is given back in a turn of the event loop only. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

// Storage for rows of a long capture that do not fit into memory: a temporary file without a name, created for the
// first page.
//
// The file is unlinked at once, so that nothing remains after any end of the process. When it can not be created or the
// disk is full, pages stay in memory.

/** Stores pages in the directory of temporary files. */
function createPageFile(folder: string = tmpdir()) {
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

// A progress line on the terminal for long files; nothing without a terminal.

const everyMs = 200;
/** Shorter readings show no line. */
const silentMs = 700;

export interface Progress {
  show(file: CaptureFile, packets: number): void;
  clear(): void;
}

/** Creates the line; null without a terminal. */
export function createProgress(terminal: Pick<WriteStream, 'write'> | null): Progress | null {
  if (!terminal) return null;
  const startedAt = performance.now();
  let shownAt = startedAt + silentMs - everyMs;
  let isShown = false;
  return {
    show(file, packets) {
      const now = performance.now();
      if (now - shownAt < everyMs) return;
      shownAt = now;
      isShown = true;
      const rate = Math.round(packets / (now - startedAt));
      const share = file.progress === null ? '' : `${Math.floor(file.progress * 100)} %, `;
      terminal.write(
        `\r\x1b[Kreading: ${share}${packets.toLocaleString('en-US')} packets, ${rate} thousand per second`,
      );
    },
    clear() {
      if (isShown) terminal.write('\r\x1b[K');
    },
  };
}

/** Everything that is printed. */
export interface Findings {
  facts: FileFacts;
  result: ReadingResult;
  /** The rows that match the query. */
  selection: Selection;
  answers: AnswerLog;
  /** Null when not requested. */
  minutes: MinuteSums | null;
}
