/**
 * Lets the work of one key run one at a time in this process, in the order of its calls; other keys are not delayed.
 *
 * Orders of one account wait for one another in the database anyway. Waiting here costs no connection, so an account
 * whose balance is locked holds one of them at most.
 */
export function createTurns<Key>(): <T>(key: Key, work: () => Promise<T>) => Promise<T> {
  const last = new Map<Key, Promise<unknown>>();
  return async (key, work) => {
    const before = last.get(key) ?? Promise.resolve();
    const mine = before.then(work, work);
    // A failure belongs to its own caller.
    const ended = mine.catch(() => {});
    last.set(key, ended);
    try {
      return await mine;
    } finally {
      if (last.get(key) === ended) last.delete(key);
    }
  };
}
