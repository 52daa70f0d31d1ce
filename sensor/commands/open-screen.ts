/** The output of commands that read capture files. */
import { fstatSync } from 'node:fs';
import { createTextOutput, type ReadScreen } from '#sensor/capture-reader/index.ts';

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
