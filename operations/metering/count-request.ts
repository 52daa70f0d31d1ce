/** Requests of one account that are waiting to be written together. */
interface Batch {
  /** How many of each key. */
  keys: Map<string, number>;
  waiting: { resolve: (number: number) => void; reject: (error: unknown) => void }[];
}

export interface CountRow {
  tenantId: number;
  keyId: string;
  count: number;
}

/** Writes the counts durably; returns each account's count afterwards. */
export type WriteCounts = (counts: readonly CountRow[]) => Promise<Map<number, number>>;

export interface Counter {
  count(tenantId: number, keyId: string): Promise<number>;
}

/**
 * Gathers counts while a write is under way. A write that raised an account's count by n to c belongs to n requests:
 * they get the numbers c-n+1 to c, each one once, also when several processes write to the same row.
 */
export function createCounter(write: WriteCounts): Counter {
  let gathering = new Map<number, Batch>();
  let isWriting = false;

  async function flush(): Promise<void> {
    const batches = gathering;
    gathering = new Map();
    const counts: CountRow[] = [];
    for (const [tenantId, batch] of batches)
      for (const [keyId, count] of batch.keys) counts.push({ tenantId, keyId, count });
    try {
      const totals = await write(counts);
      for (const [tenantId, { waiting }] of batches) {
        const first = totals.get(tenantId)! - waiting.length;
        for (const [index, { resolve }] of waiting.entries()) resolve(first + index + 1);
      }
    } catch (error) {
      for (const { waiting } of batches.values()) for (const { reject } of waiting) reject(error);
    }
  }

  async function run(): Promise<void> {
    isWriting = true;
    // One turn of the event loop, so that what arrived together is written together.
    await new Promise((resolve) => setImmediate(resolve));
    while (gathering.size > 0) await flush();
    isWriting = false;
  }

  return {
    count(tenantId, keyId) {
      const batch: Batch = gathering.get(tenantId) ?? { keys: new Map(), waiting: [] };
      gathering.set(tenantId, batch);
      batch.keys.set(keyId, (batch.keys.get(keyId) ?? 0) + 1);
      const number = new Promise<number>((resolve, reject) => batch.waiting.push({ resolve, reject }));
      if (!isWriting) void run();
      return number;
    },
  };
}
