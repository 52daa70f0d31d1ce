/** Memory that this thread holds after everything unused was given back: the same on a busy machine. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

export function liveKiB(): number {
  // What the first round finalizes, the second gives back.
  collectGarbage();
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return Math.round((heapUsed + external) / 1024);
}
