/**
 * Reads from strace's lines whether the disk had what was said: the order of writes, syncs and words that stands for
 * a loss of power, which no test can cause.
 *
 * SQLite appends to its log and syncs it; now and then it copies the log into the file, syncs that, and begins the log
 * anew. A log whose sync failed is not believed until it has been begun anew.
 */

export interface OrderResult {
  offences: string[];
  /** Syncs of the log, words that depend on them, and times that the log was begun anew. */
  syncs: number;
  words: number;
  restarts: number;
}

interface Call {
  name: string;
  target: string;
  text: string;
  failed: boolean;
}

/** Checks one process's calls, in order: `pwrite64`, `fsync`, `fdatasync`, `ftruncate`, `write` and `writev`. */
export function checkWriteOrder(trace: readonly string[]): OrderResult {
  const result: OrderResult = { offences: [], syncs: 0, words: 0, restarts: 0 };
  /** Bytes of the log, and of the file, that no sync has followed. */
  let logIsDirty = false;
  let fileIsDirty = false;
  let logIsDoubtful = false;
  /** Syncs when the last word was said that needs one of its own. */
  let usedSyncs = 0;
  const saidWords = (what: string, needsSync: boolean) => {
    result.words += 1;
    if (needsSync && result.syncs === usedSyncs) result.offences.push(`${what} without a sync of its own`);
    if (needsSync) usedSyncs = result.syncs;
    if (logIsDirty) result.offences.push(`${what} before the log was synced`);
    if (logIsDoubtful) result.offences.push(`${what} on a log whose sync had failed`);
  };
  const beginsAnew = () => {
    result.restarts += 1;
    if (fileIsDirty) result.offences.push('the log is begun anew before the file was synced');
    logIsDirty = false;
    logIsDoubtful = false;
  };
  for (const line of joinResumed(trace)) {
    const call = parseCall(line);
    if (!call) continue;
    const isLog = call.target.endsWith('.sqlite-wal');
    const isFile = call.target.endsWith('.sqlite');
    const isSync = call.name === 'fsync' || call.name === 'fdatasync';
    if (isSync && isLog && call.failed) logIsDoubtful = true;
    else if (isSync && isFile && !call.failed) fileIsDirty = false;
    else if (isSync && isLog) {
      logIsDirty = false;
      result.syncs += 1;
    } else if (call.failed) {
      // SQLite gives up the transaction; what it had written of it is nobody's word.
      if (isLog) logIsDirty = false;
    } else if (call.name === 'ftruncate' && isLog) beginsAnew();
    else if (call.name === 'pwrite64' && isLog) {
      if (/, 0\)\s+= 32$/.test(call.text)) beginsAnew();
      logIsDirty = true;
    } else if (call.name === 'pwrite64' && isFile) {
      if (logIsDirty) result.offences.push('the file is written before its log was synced');
      fileIsDirty = true;
    } else if (/"\d+\\n"/.test(call.text)) saidWords('a minute was called collected', true);
    else if (call.text.includes('"receipt ')) saidWords('a receipt was called stored', true);
    else if (call.text.includes('POST /agent/v1/telemetry')) saidWords('an upload was sent', false);
  }
  return result;
}

/** A call that another thread's line interrupted stands in two halves. */
function joinResumed(trace: readonly string[]): string[] {
  const halves = new Map<string, string>();
  return trace.flatMap((line) => {
    const [, thread, rest] = /^(\d+) +[\d.]+ (.*)$/.exec(line) ?? [];
    if (!thread || rest === undefined) return [];
    if (rest.endsWith('<unfinished ...>')) {
      halves.set(thread, rest.slice(0, -'<unfinished ...>'.length));
      return [];
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest);
    return [resumed ? `${halves.get(thread) ?? ''}${resumed[1]}` : rest];
  });
}

function parseCall(text: string): Call | null {
  const [, name, target] = /^(\w+)\((?:\d+<([^>]*)>)?/.exec(text) ?? [];
  if (!name) return null;
  return {
    name,
    target: target ?? '',
    text,
    failed: / = -1 E[A-Z]+/.test(text) || / = 0 \(INJECTED\)$/.test(text),
  };
}
