/** Runs a reader of capture files in this process; returns its output, its messages and its exit code. */
import { type ReadOptions, type ReadScreen, readFiles } from '#sensor/capture-reader/index.ts';

export interface PrintedReading {
  status: number;
  stdout: string;
  stderr: string;
}

/** Reads the files with these options. */
export function readInProcess(paths: readonly string[], options: ReadOptions = {}): Promise<PrintedReading> {
  return printInProcess((screen) => readFiles(paths, options, screen));
}

/** What `print` writes to a screen without a terminal; it resolves with the exit code. */
export async function printInProcess(
  print: (screen: ReadScreen) => Promise<number>,
): Promise<PrintedReading> {
  const written: string[] = [];
  const complaints: string[] = [];
  const status = await print({
    out: {
      write: (text) => written.push(text),
      writeBytes: (bytes) => written.push(Buffer.from(bytes).toString()),
      end() {},
    },
    look: { width: null, isColored: false },
    terminal: null,
    complain: (sentence) => complaints.push(`${sentence}\n`),
  });
  return { status, stdout: written.join(''), stderr: complaints.join('') };
}
