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

interface CounterDeps {
  /** Writes the counts durably, all or none; returns each account's count afterwards. */
  write(counts: readonly CountRow[], lockTimeoutMs: number): Promise<Map<number, number>>;
  /** Whether a write failed because a row was locked. */
  isLocked(error: unknown): boolean;
  /** How long an account that is written alone waits for a lock; its requests go uncounted after it. Default 2 s. */
  ownLockTimeoutMs?: number | undefined;
}

export type Counter = ReturnType<typeof createCounter>;

/** How long a write of many accounts waits for a lock: one locked account delays the others once, for this long. */
const sharedLockTimeoutMs = 50;
const ownLockTimeoutMsDefault = 2_000;
/** Accounts that are written alone at a time: locked ones must not take every connection. */
const ownWritesMax = 4;

/** An account that is written alone, because its rows may be locked. */
interface Apart {
  gathering: Batch | null;
  lockTimeoutMs: number;
  isQueued: boolean;
}

/** What a counter holds between its writes. */
interface Counting extends CounterDeps {
  ownLockTimeoutMs: number;
  /** Accounts whose next write is a common one. */
  shared: Map<number, Batch>;
  isSharedWriting: boolean;
  /** Accounts that are written alone. */
  apart: Map<number, Apart>;
  /** Those of them that wait for their write. */
  queue: number[];
  ownWrites: number;
}

/**
 * Gathers counts while a write is under way. A write that raised an account's count by n to c belongs to n requests:
 * they get the numbers c-n+1 to c, each one once, also when several processes write to the same row.
 *
 * Accounts share a write until one meets a lock. Then each account of it is written alone; those that succeed share again,
 * and the locked one continues alone, so that it delays only its own requests.
 */
export function createCounter(deps: CounterDeps) {
  const counting: Counting = {
    write: deps.write,
    isLocked: deps.isLocked,
    ownLockTimeoutMs: deps.ownLockTimeoutMs ?? ownLockTimeoutMsDefault,
    shared: new Map(),
    isSharedWriting: false,
    apart: new Map(),
    queue: [],
    ownWrites: 0,
  };
  return { count: (tenantId: number, keyId: string) => countOne(counting, tenantId, keyId) };
}

function countOne(counting: Counting, tenantId: number, keyId: string): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  const account = counting.apart.get(tenantId);
  const gathering = account ? account.gathering : counting.shared.get(tenantId);
  const batch: Batch = gathering ?? { keys: new Map(), waiting: [] };
  batch.keys.set(keyId, (batch.keys.get(keyId) ?? 0) + 1);
  batch.waiting.push({ resolve, reject });
  if (account) {
    account.gathering = batch;
    enqueue(counting, tenantId);
  } else {
    counting.shared.set(tenantId, batch);
    if (!counting.isSharedWriting) void runShared(counting);
  }
  return promise;
}

async function runShared(counting: Counting): Promise<void> {
  counting.isSharedWriting = true;
  // One turn of the event loop, so that what arrived together is written together.
  await new Promise((resolve) => setImmediate(resolve));
  while (counting.shared.size > 0) await writeShared(counting);
  counting.isSharedWriting = false;
}

async function writeShared(counting: Counting): Promise<void> {
  const batches = counting.shared;
  counting.shared = new Map();
  try {
    resolveAll(batches, await counting.write(rowsOf(batches), sharedLockTimeoutMs));
  } catch (error) {
    if (!counting.isLocked(error)) return rejectAll(batches.values(), error);
    for (const [tenantId, batch] of batches) setApart(counting, tenantId, batch);
  }
}

/** From here on the account is written alone. */
function setApart(counting: Counting, tenantId: number, batch: Batch): void {
  const gathering = merge(batch, counting.shared.get(tenantId) ?? null);
  counting.shared.delete(tenantId);
  counting.apart.set(tenantId, { gathering, lockTimeoutMs: sharedLockTimeoutMs, isQueued: false });
  enqueue(counting, tenantId);
}

/** Puts a batch among those that are written together. */
function setShared(counting: Counting, tenantId: number, batch: Batch): void {
  counting.shared.set(tenantId, merge(batch, counting.shared.get(tenantId) ?? null));
  if (!counting.isSharedWriting) void runShared(counting);
}

function enqueue(counting: Counting, tenantId: number): void {
  const account = counting.apart.get(tenantId)!;
  if (account.isQueued) return;
  account.isQueued = true;
  counting.queue.push(tenantId);
  if (counting.ownWrites < ownWritesMax) void runOwn(counting);
}

async function runOwn(counting: Counting): Promise<void> {
  const { queue, apart } = counting;
  counting.ownWrites += 1;
  for (let tenantId = queue.shift(); tenantId !== undefined; tenantId = queue.shift())
    await writeOwn(counting, tenantId, apart.get(tenantId)!);
  counting.ownWrites -= 1;
}

async function writeOwn(counting: Counting, tenantId: number, account: Apart): Promise<void> {
  const batches = new Map([[tenantId, account.gathering!]]);
  account.gathering = null;
  try {
    resolveAll(batches, await counting.write(rowsOf(batches), account.lockTimeoutMs));
    counting.apart.delete(tenantId);
    if (account.gathering !== null) setShared(counting, tenantId, account.gathering);
    return;
  } catch (error) {
    // The first wait is short, so that accounts that were only caught up in it are told apart soon.
    const isFirst = counting.isLocked(error) && account.lockTimeoutMs === sharedLockTimeoutMs;
    account.lockTimeoutMs = counting.ownLockTimeoutMs;
    if (isFirst) account.gathering = merge(batches.get(tenantId)!, account.gathering);
    else rejectAll(batches.values(), error);
  }
  account.isQueued = false;
  if (account.gathering !== null) enqueue(counting, tenantId);
}

function rowsOf(batches: ReadonlyMap<number, Batch>): CountRow[] {
  const rows: CountRow[] = [];
  for (const [tenantId, batch] of batches)
    for (const [keyId, count] of batch.keys) rows.push({ tenantId, keyId, count });
  return rows;
}

function resolveAll(batches: ReadonlyMap<number, Batch>, totals: ReadonlyMap<number, number>): void {
  for (const [tenantId, { waiting }] of batches) {
    const first = totals.get(tenantId)! - waiting.length;
    for (const [index, { resolve }] of waiting.entries()) resolve(first + index + 1);
  }
}

function rejectAll(batches: Iterable<Batch>, error: unknown): void {
  for (const { waiting } of batches) for (const { reject } of waiting) reject(error);
}

function merge(first: Batch, second: Batch | null): Batch {
  if (second === null) return first;
  for (const [keyId, count] of second.keys) first.keys.set(keyId, (first.keys.get(keyId) ?? 0) + count);
  first.waiting.push(...second.waiting);
  return first;
}
