/**
 * Look-ups of one row that requests make all the time. PostgreSQL and the driver take as long for a statement as for ten rows
 * of it, so those that ask in the same moment share one.
 */

/** A look-up whose askers of one turn of the event loop share one statement. */
export type Lookup<K, V> = (key: K) => Promise<V | null>;

/** `find` gets the distinct keys of a turn; it is asked anew every turn, so nothing is ever cached. */
export function createLookup<K, V>(find: (keys: K[]) => Promise<Map<K, V>>): Lookup<K, V> {
  let gathering: { keys: Set<K>; answer: Promise<Map<K, V>> } | null = null;
  return async (key) => {
    if (gathering === null) {
      const keys = new Set<K>();
      const answer = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
        gathering = null;
        return find([...keys]);
      });
      gathering = { keys, answer };
    }
    gathering.keys.add(key);
    return (await gathering.answer).get(key) ?? null;
  };
}

/** Those who ask for the same in one turn of the event loop share one `read`, which begins after they have asked. */
export function createSharing() {
  const reads = new Map<string, Promise<unknown>>();
  return <T>(key: string, read: () => Promise<T>): Promise<T> => {
    const known = reads.get(key) as Promise<T> | undefined;
    if (known !== undefined) return known;
    const answer = new Promise<void>((resolve) => setImmediate(resolve)).then(() => {
      reads.delete(key);
      return read();
    });
    reads.set(key, answer);
    return answer;
  };
}
