/** `./svc sensor read FILE…`: reads capture files and prints to this process's output. Resolves with the exit code. */

import { fstatSync } from 'node:fs';
import {
  createTextOutput,
  type DetectOptions,
  detectFile,
  type ReadOptions,
  type ReadScreen,
  readFiles,
} from '#sensor/capture-reader/index.ts';

export async function read(paths: readonly string[], options: ReadOptions): Promise<number> {
  return readFiles(paths, options, openScreen('read'));
}

// `./svc sensor detect FILE`: finds the attacks in a capture file. Resolves with the exit code.

export async function detect(path: string, options: DetectOptions): Promise<number> {
  return detectFile(path, options, openScreen('detect'));
}

// The output of commands that read capture files.

/** Output of this process for one of its commands. Streams are used only for a terminal, because loading them takes time. */
export function openScreen(command: string): ReadScreen {
  const isWide = isTerminal(1);
  const isColored = isWide && !process.env.NO_COLOR && process.env.TERM !== 'dumb';
  const errors = createTextOutput(2);
  return {
    out: createTextOutput(1),
    look: { width: isWide ? (process.stdout.columns ?? null) : null, isColored },
    terminal: isTerminal(2) ? process.stderr : null,
    complain(sentence) {
      errors.write(`svc sensor ${command}: ${sentence}\n`);
      errors.end();
    },
  };
}

/** Device class of /dev/null and similar devices. */
const memoryDevices = 1;

/** Like `isatty`, whose module loads the network modules; it is called only for possible terminals. */
function isTerminal(descriptor: number): boolean {
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isCharacterDevice() || stat.rdev >>> 8 === memoryDevices) return false;
    return process.getBuiltinModule('node:tty').isatty(descriptor);
  } catch {
    return false;
  }
}
