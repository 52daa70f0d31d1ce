/**
 * Prints what the engine finds in capture files, as tables for people or as JSON for programs.
 *
 * Readable parts go to the output with exit code 0, and problems are reported as sentences. Exit code 2 means that a
 * file is not a capture, that no link type is supported, or that options are invalid.
 */
import type { WriteStream } from 'node:tty';
import { type CaptureFile, NotACaptureError, openCaptureFile } from '#sensor/capture-files/index.ts';
import { AnswerLog } from './answer-log.ts';
import { MinuteSums } from './minute-sums.ts';
import { createPageFile } from './page-file.ts';
import { isFiltered, matchesAnswer, matchesUsage, selectRows } from './read-filter.ts';
import { FrameReading, packetsIn } from './read-frames.ts';
import { createProgress } from './read-progress.ts';
import { parseQuery, type ReadOptions } from './read-query.ts';
import { OutputClosedError, type TextOutput } from './text-output.ts';
import type { TextLook } from './text-table.ts';

/** Output of a reading and of its messages. */
export interface ReadScreen {
  out: TextOutput;
  look: TextLook;
  /** Shows the progress of long readings; null without a terminal. */
  terminal: Pick<WriteStream, 'write'> | null;
  complain(sentence: string): void;
}

/** Reads the files as one capture, prints the findings and returns the exit code. */
export async function readFiles(
  paths: readonly string[],
  options: ReadOptions,
  screen: ReadScreen,
): Promise<number> {
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
