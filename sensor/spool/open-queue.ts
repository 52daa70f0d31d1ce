/** Opens the spool's file and finds it sound. Every error closes it again. */
import { randomUUID } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';
import { upTo } from './minute-ranges.ts';
import { type QueueDeps, SpoolQueue } from './queue.ts';
import { currentSpoolFile, makeDurableFile, readStateCopy } from './spool-file.ts';
import { type SpoolState, spoolFormat } from './spool-state.ts';
import { openSpoolStore, type SpoolStore } from './store.ts';

/** Opens the queue, or makes an empty one. `isDoubtful`: the disk may hold less than the log seems to. */
export function openQueue(deps: QueueDeps, isDoubtful: boolean): SpoolQueue {
  const { directory, clock } = deps;
  const { path } = currentSpoolFile(directory);
  makeDurableFile(path, directory);
  const store = openSpoolStore(path, deps.bytesMax);
  try {
    if (store.isEmpty()) createState(store, directory);
    const state = readSoundState(store, directory);
    // After a failed sync the kernel may show bytes that no disk holds, and call the next sync of them good. Written
    // into the other file and synced there, they are durable in any state of the log.
    if (isDoubtful) store.truncateWal();
    const thisMinute = Math.floor(clock.nowMs() / 60_000) * 60;
    // An earlier version did not tell what it collected from what it named as missing, and covered a future that its
    // clock once showed.
    const delivered = state.delivered ?? upTo(state.covered, thisMinute);
    return new SpoolQueue(deps, store, { ...state, delivered });
  } catch (error) {
    store.close();
    throw error;
  }
}

function createState(store: SpoolStore, directory: string): void {
  // A spool that was begun has left its state beside it: this one was emptied or removed.
  if (readStateCopy(directory)) throw new CodedError('spool.damaged', `The spool in ${directory} is empty.`);
  const spoolId = randomUUID();
  store.create({ format: spoolFormat, spoolId, nextSequence: 1, covered: [], lastReceipt: null });
}

function readSoundState(store: SpoolStore, directory: string): SpoolState {
  if (!store.isSound()) throw new CodedError('spool.damaged', `The spool in ${directory} is damaged.`);
  const state = store.readState();
  if (!state) throw new CodedError('spool.damaged', `The spool in ${directory} has lost its state.`);
  if (state.format > spoolFormat) {
    throw new CodedError(
      'spool.newer',
      `The spool in ${directory} was made by a newer sensor. Install that one.`,
    );
  }
  return state;
}
