/**
 * Joins calls that come at the same time into one: what arrives while a batch is under way makes the next one.
 *
 * A single call runs at once and does not wait for others. Each caller gets its own result or its own error.
 */

export interface BatchingOptions<Item, Result> {
  /** Does all items at once; a result for each, in their order, an `Error` for one that failed alone. */
  run(items: readonly Item[]): Promise<(Result | Error)[]>;
  /** Items of one batch at most. */
  itemsMax: number;
  /** What an item weighs, and how much one batch may hold; a heavier item goes alone. */
  weigh?: (item: Item) => number;
  weightMax?: number;
  /** Batches under way at the same time; 1 unless told otherwise. */
  batchesMax?: number;
}

/** A function that processes one item as part of a batch. */
export function createBatching<Item, Result>(
  options: BatchingOptions<Item, Result>,
): (item: Item) => Promise<Result> {
  interface Waiting {
    item: Item;
    resolve(result: Result): void;
    reject(error: unknown): void;
  }
  const { weigh = () => 0, weightMax = Number.POSITIVE_INFINITY, batchesMax = 1 } = options;
  let queue: Waiting[] = [];
  let running = 0;
  let isPlanned = false;

  function takeBatch(): Waiting[] {
    let weight = 0;
    let count = 0;
    while (count < queue.length && count < options.itemsMax) {
      weight += weigh(queue[count]!.item);
      if (count > 0 && weight > weightMax) break;
      count += 1;
    }
    const batch = queue.slice(0, count);
    queue = queue.slice(count);
    return batch;
  }

  async function runBatch(): Promise<void> {
    const batch = takeBatch();
    running += 1;
    try {
      const results = await options.run(batch.map(({ item }) => item));
      for (const [i, waiting] of batch.entries()) {
        const result = results[i];
        if (result instanceof Error) waiting.reject(result);
        else waiting.resolve(result as Result);
      }
    } catch (error) {
      for (const waiting of batch) waiting.reject(error);
    } finally {
      running -= 1;
      plan();
    }
  }

  /** After the other calls of this turn of the event loop, so that what arrived together goes together. */
  function plan(): void {
    if (isPlanned || queue.length === 0 || running >= batchesMax) return;
    isPlanned = true;
    setImmediate(() => {
      isPlanned = false;
      while (queue.length > 0 && running < batchesMax) void runBatch();
    });
  }

  return (item) =>
    new Promise((resolve, reject) => {
      queue.push({ item, resolve, reject });
      plan();
    });
}
