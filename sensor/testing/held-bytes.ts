/** Bytes of buffers and typed arrays that are still held: what waits for a collection does not count. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

export async function heldBytes(): Promise<number> {
  // Several times, for what the first one left to do.
  for (let i = 0; i < 5; i += 1) {
    collect();
    await nextTurn();
  }
  return process.memoryUsage().arrayBuffers;
}
