/**
 * Checks with strace's output that data was on disk before it was reported: the order of writes, syncs and messages
 * represents a power loss, which a test can not cause.
 *
 * SQLite appends to its log and syncs it. From time to time it copies the log into the file, syncs the file, and
 * restarts the log. A log whose sync failed is not trusted until it is restarted.
 */

export interface OrderResult {
  offences: string[];
  /** Syncs of the log, messages that depend on them, and restarts of the log. */
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

/** Checks the calls of one process, in order: `pwrite64`, `fsync`, `fdatasync`, `ftruncate`, `write` and `writev`. */
export function checkWriteOrder(trace: readonly string[]): OrderResult {
  const result: OrderResult = { offences: [], syncs: 0, words: 0, restarts: 0 };
  /** Bytes of the log, and of the file, without a later sync. */
  let logIsDirty = false;
  let fileIsDirty = false;
  let logIsDoubtful = false;
  /** Number of syncs at the last message that needs its own sync. */
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
      // SQLite rolls back the transaction, so its writes no longer matter.
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

/** A call that another thread's line interrupted is in two parts. */
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
