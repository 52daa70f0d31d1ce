/** Memory of this thread after garbage collection; independent of the load of the machine. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

export function liveKiB(): number {
  // The second collection frees what the first one finalized.
  collectGarbage();
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return Math.round((heapUsed + external) / 1024);
}
