/**
 * Turns sightings of one address at one device into its binding history.
 *
 * Sightings may come late and in any order; the same sightings give the same history. Archives of the device divide
 * time: no binding spans an archive, and sightings from before the last one are history, whenever they arrive
 * (NET-3.3).
 */

export type EndedBy = 'silence' | 'owner' | 'archive';

/** An uninterrupted period in which a device owned an address. */
export interface Binding {
  /** Null before it is stored. */
  id: number | null;
  /** Starts of minutes, seconds since 1970. */
  firstMinute: number;
  lastMinute: number;
  /** Unix milliseconds; null for the live claim. */
  endedMs: number | null;
  endedBy: EndedBy | null;
}

interface PlacedMinutes {
  /** Bindings to write; those without an id are new. */
  written: Binding[];
  /** Ids of bindings that were joined into another. */
  removed: number[];
}

/**
 * Adds minutes to a device's bindings of one address. `releasedMs` is the end of the device's last machine: minutes
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

/**
 * Joins bindings that are not separated by a long gap or another owner; `removed` receives the ids that are no longer
 * used.
 */
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
    // The end of the later binding counts, unless it is a new minute without an end.
    if (row.endedBy !== null || row.id !== null) {
      before.endedMs = row.endedMs;
      before.endedBy = row.endedBy;
    }
    before.lastMinute = Math.max(before.lastMinute, row.lastMinute);
  }
  return joined;
}

/** The newest binding of the present part is live; others ended by timeout, or with the machine. */
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

// When a sighting changes who owns an address. All in seconds.

/** How far the stored time of a sighting may lag while nothing else changes. */
export const lagSeconds = 300;
/** After a longer time without a sighting a new binding begins. */
export const silenceSeconds = 3600;
/** A sighting is of a minute; a claim that ends with its last sighting ends after that minute. */
export const lastMinuteSeconds = 60;

/** An owner without sightings loses its claim when another one was seen so much later. */
export const supersededSeconds = 600;
/** The same for owners in conflict, which may be seen in turn. */
export const conflictSettledSeconds = 3600;
/** Two owners clash when both were seen within this time of the newest sighting. */
export const overlapSeconds = 300;

/** A MAC stays foreign for so long after it was reported as foreign. */
export const foreignKeptSeconds = 86_400;
/** A report of a foreign MAC is stored again after this time. */
export const foreignNotedSeconds = 3600;
