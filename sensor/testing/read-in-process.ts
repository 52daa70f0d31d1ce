/** Runs `sensor read` in this process; returns its output, its messages and its exit code. */
import { type ReadOptions, readFiles } from '#sensor/capture-reader/index.ts';

export interface PrintedReading {
  status: number;
  stdout: string;
  stderr: string;
}

/** Reads the files with these options. */
export async function readInProcess(
  paths: readonly string[],
  options: ReadOptions = {},
): Promise<PrintedReading> {
  const written: string[] = [];
  const complaints: string[] = [];
  const status = await readFiles(paths, options, {
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
