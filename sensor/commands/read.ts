/**
 * `sensor read FILE…`: what the engine finds in capture files, as tables for people or as JSON for programs.
 *
 * Whatever could be read goes to standard output with exit code 0, and the rest is said on standard error; exit code
 * 2 is for what is no capture, for link types that nothing here can decode, and for options that mean nothing.
 */
import { type CaptureFile, NotACaptureError, openCaptureFile } from '#sensor/packet-source/capture-file.ts';
import { filterReading, isFiltered } from './read-filter.ts';
import { type OpenCapture, readFrames } from './read-frames.ts';
import { renderJson } from './read-json.ts';
import { createProgress } from './read-progress.ts';
import { parseQuery, type ReadOptions } from './read-query.ts';
import { renderTables } from './read-tables.ts';

export type { ReadOptions } from './read-query.ts';

/** Reads the files as one capture, prints what was found, and answers the exit code. */
export function readFiles(paths: readonly string[], options: ReadOptions): number {
  try {
    const query = parseQuery(options);
    const captures = openInOrder(paths);
    const progress = createProgress(process.stderr);
    const { facts, result, minutes, problems } = readFrames(captures, {
      local: query.local,
      from: query.from,
      to: query.to,
      wantsMinutes: options.minutes ?? false,
      onProgress: progress.show,
    });
    progress.clear();
    // Whoever reads only the beginning (`| head`) is no failure.
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      process.exit(error.code === 'EPIPE' ? 0 : 1);
    });
    const shown = filterReading(result, query);
    const minutesShown = options.minutes ? minutes : null;
    const pieces = options.json
      ? renderJson(facts, shown, minutesShown)
      : [
          renderTables(
            {
              facts,
              result: shown,
              minutes: minutesShown,
              allFlows: isFiltered(query) ? result.flows.length : null,
            },
            query,
            { width: process.stdout.columns ?? null, isColored: wantsColor() },
          ),
        ];
    for (const piece of pieces) process.stdout.write(piece);
    for (const problem of problems) complain(problem);
    return 0;
  } catch (error) {
    if (!(error instanceof NotACaptureError)) throw error;
    complain(error.message);
    return 2;
  }
}

/**
 * Opens the files, the one with the earliest first packet first: parts of a capture that was cut by size have names that
 * no shell sorts rightly. Of several, one that can't be read is said and left out.
 */
function openInOrder(paths: readonly string[]): OpenCapture[] {
  if (paths.length === 1) return [{ path: paths[0]!, file: openCaptureFile(paths[0]!) }];
  const dated: { path: string; at: number }[] = [];
  let failure: NotACaptureError | null = null;
  for (const path of paths) {
    try {
      if (path === '-') throw new NotACaptureError('- (standard input) is read alone, not with other files.');
      dated.push({ path, at: firstTime(openCaptureFile(path)) });
    } catch (error) {
      if (!(error instanceof NotACaptureError)) throw error;
      if (failure) complain(failure.message);
      failure = error;
    }
  }
  if (failure && dated.length === 0) throw failure;
  if (failure) complain(failure.message);
  return dated.sort((a, b) => a.at - b.at).map(({ path }) => ({ path, file: openCaptureFile(path) }));
}

function firstTime(file: CaptureFile): number {
  try {
    return file.next() ? file.seconds + file.nanoseconds / 1e9 : Number.POSITIVE_INFINITY;
  } finally {
    file.close();
  }
}

function wantsColor(): boolean {
  return process.stdout.isTTY === true && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
}

function complain(sentence: string): void {
  process.stderr.write(`svc sensor read: ${sentence}\n`);
}
