/** One simulated demo for the test files of a process: starting one takes as much of the processor as a file of tests. */
import { type RunningDemo, runDemo } from './run-demo.ts';

export interface SharedDemo {
  start(): Promise<RunningDemo>;
  /** Ends the demo when no other file of this process is going to use it. */
  stop(): Promise<void>;
}

let users = 0;
let running: Promise<RunningDemo> | null = null;

/** To be called once while a file is loaded, since that is how the demo knows of all its users. */
export function shareDemo(): SharedDemo {
  users += 1;
  return {
    start() {
      running ??= runDemo({ isSimulated: true });
      return running;
    },
    async stop() {
      users -= 1;
      if (users > 0 || running === null) return;
      const ending = running;
      running = null;
      await (await ending).stop();
    },
  };
}
