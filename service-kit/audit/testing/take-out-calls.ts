/**
 * Takes the calls that write to the audit trail out of a running program, one at a time, and shows whether it is noticed.
 *
 * Each call is loaded behind a switch, so that one process and one world do for all of them. A first pass notes which call
 * each route makes; a call is then taken out for the routes that make it.
 */
import { registerHooks } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { nameOf, type RecordCall } from './record-calls.ts';

const root = fileURLToPath(new URL('../../..', import.meta.url));

export interface Switches {
  /** The call that is taken out; null: none. */
  removed: number | null;
  /** Calls that were made since it was emptied. */
  readonly made: Set<number>;
}

/** Loads every call behind its switch. Call it before the modules are loaded. */
export function switchCalls(calls: readonly RecordCall[]): Switches {
  const switches: Switches = { removed: null, made: new Set() };
  Object.assign(globalThis, {
    isAuditCallRemoved(index: number) {
      switches.made.add(index);
      return switches.removed === index;
    },
  });
  const insertions = new Map<string, { at: number; text: string }[]>();
  for (const [index, { file, start, end, without }] of calls.entries()) {
    const url = pathToFileURL(`${root}${file}`).href;
    const found = insertions.get(url) ?? [];
    insertions.set(url, found);
    found.push({ at: start, text: `(globalThis.isAuditCallRemoved(${index}) ? ${without} : ` });
    found.push({ at: end, text: ')' });
  }
  for (const found of insertions.values()) found.sort((a, b) => b.at - a.at);
  registerHooks({
    load(requested, context, next) {
      const loaded = next(requested, context);
      const found = insertions.get(requested);
      if (!found) return loaded;
      let text = Buffer.from(loaded.source as Uint8Array).toString('utf8');
      for (const { at, text: inserted } of found) text = text.slice(0, at) + inserted + text.slice(at);
      return { ...loaded, source: text };
    },
  });
  return switches;
}

export interface TakenOut {
  /** Names of the calls that were taken out, with what noticed it; null: nothing did. */
  calls: { name: string; noticedBy: string | null }[];
  /** What is wrong while every call is in place. */
  faults: string[];
}

/** `judge` runs a route, or another thing that changes something, and returns what is missing in the trail. */
export async function takeOutCalls(options: {
  calls: readonly RecordCall[];
  /** Bounds the calls that are taken out. */
  n: number;
  switches: Switches;
  things: readonly string[];
  judge(thing: string): Promise<string[]>;
}): Promise<TakenOut> {
  const { calls, switches, things } = options;
  const judge = (thing: string) => options.judge(thing).catch((error) => [`${thing}: ${String(error)}`]);
  const result: TakenOut = { calls: [], faults: [] };
  const madeBy = calls.map((): string[] => []);
  for (const thing of things) {
    switches.made.clear();
    result.faults.push(...(await judge(thing)));
    for (const index of switches.made) madeBy[index]!.push(thing);
  }
  for (const [index, call] of calls.slice(0, options.n).entries()) {
    let noticedBy: string | null = null;
    for (const thing of madeBy[index]!) {
      switches.removed = index;
      const missing = await judge(thing);
      switches.removed = null;
      // In place again, or what was missing says nothing about the call.
      const stillMissing = missing.length > 0 ? await judge(thing) : [];
      result.faults.push(...stillMissing.map((fault) => `again: ${fault}`));
      if (missing.length > 0 && stillMissing.length === 0) noticedBy = missing[0]!;
      if (noticedBy !== null) break;
    }
    result.calls.push({ name: nameOf(call), noticedBy });
  }
  return result;
}
