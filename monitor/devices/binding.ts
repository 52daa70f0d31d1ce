/**
 * The rule by which sightings of one address at one device become its binding history.
 *
 * Sightings come late and in any order; the same ones give the same history. The archives of the device cut time into
 * parts: no binding reaches over one, and what was seen before the last is history, whenever it arrives (NET-3.3).
 */

export type EndedBy = 'silence' | 'owner' | 'archive';

/** An unbroken time in which a device owned an address. */
export interface Binding {
  /** Null until it is stored. */
  id: number | null;
  /** Starts of minutes, seconds since 1970. */
  firstMinute: number;
  lastMinute: number;
  /** Unix milliseconds; null for the live claim. */
  endedMs: number | null;
  endedBy: EndedBy | null;
}

export interface PlacedMinutes {
  /** Bindings to be written, those without an id to be added. */
  written: Binding[];
  /** Ids of bindings that became part of another. */
  removed: number[];
}

/** An address that was not seen for longer than this was bound anew. */
export const silenceSeconds = 3600;

/**
 * Puts minutes into a device's bindings of one address. `releasedMs` is when the device's last machine ended: minutes
 * that began before it make no live claim.
 */
export function placeMinutes(
  bindings: readonly Binding[],
  minutes: readonly number[],
  releasedMs: number | null,
): PlacedMinutes {
  const cuts = [...new Set(bindings.flatMap((one) => (one.endedBy === 'archive' ? one.endedMs! : [])))];
  if (releasedMs !== null && !cuts.includes(releasedMs)) cuts.push(releasedMs);
  cuts.sort((a, b) => a - b);
  const partOf = (minute: number) => cuts.filter((cut) => cut <= minute * 1000).length;
  const rows = [...bindings, ...minutes.map(ofMinute)].sort((a, b) => a.firstMinute - b.firstMinute);
  const result: PlacedMinutes = { written: [], removed: [] };
  const stored = new Map(bindings.map((one) => [one.id, one]));
  for (const [part, inPart] of Map.groupBy(rows, (row) => partOf(row.firstMinute))) {
    const joined = joinNear(inPart, result.removed);
    for (const [i, row] of joined.entries()) {
      const placed = endRow(row, i === joined.length - 1, cuts[part] ?? null);
      if (!isSame(stored.get(placed.id), placed)) result.written.push(placed);
    }
  }
  return result;
}

function ofMinute(minute: number): Binding {
  return { id: null, firstMinute: minute, lastMinute: minute, endedMs: null, endedBy: null };
}

/** Joins what no silence and no other owner parts; `removed` takes the ids that are left over. */
function joinNear(rows: readonly Binding[], removed: number[]): Binding[] {
  const joined: Binding[] = [];
  for (const row of rows) {
    const before = joined.at(-1);
    const isTaken = before?.endedBy === 'owner' && row.firstMinute * 1000 >= before.endedMs!;
    if (!before || isTaken || row.firstMinute > before.lastMinute + silenceSeconds) {
      joined.push({ ...row });
      continue;
    }
    if (row.id !== null) {
      if (before.id !== null) removed.push(row.id);
      before.id ??= row.id;
    }
    // The end of the later one counts, unless that is only a minute which has none of its own.
    if (row.endedBy !== null || row.id !== null) {
      before.endedMs = row.endedMs;
      before.endedBy = row.endedBy;
    }
    before.lastMinute = Math.max(before.lastMinute, row.lastMinute);
  }
  return joined;
}

/** The newest of the running part is live; others ended by silence, or with the machine. */
function endRow(row: Binding, isNewest: boolean, cutMs: number | null): Binding {
  if (row.endedBy === 'owner') return row;
  if (!isNewest) return { ...row, endedMs: (row.lastMinute + 60) * 1000, endedBy: 'silence' };
  return cutMs === null
    ? { ...row, endedMs: null, endedBy: null }
    : { ...row, endedMs: cutMs, endedBy: 'archive' };
}

function isSame(stored: Binding | undefined, placed: Binding): boolean {
  return (
    stored !== undefined &&
    stored.firstMinute === placed.firstMinute &&
    stored.lastMinute === placed.lastMinute &&
    stored.endedMs === placed.endedMs &&
    stored.endedBy === placed.endedBy
  );
}
