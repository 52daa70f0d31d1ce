/** What every section's reader gives, and how versions and lists are read. */

/** A plan as it came: fields that this sensor does not know are ignored. */
export type PlanFields = Readonly<Record<string, unknown>>;

/** What a reader made of its section. */
export interface ReadSection<Values> {
  values: Values;
  /** Entries that this sensor does not understand. */
  ignored: number;
  /** Entries above this sensor's bound. */
  leftOut: number;
}

/** Version 1 or a later one, which takes what version 1 takes. */
export function isAdvertised(version: unknown): boolean {
  return Number.isSafeInteger(version) && (version as number) >= 1;
}

/** A section without a list. */
export function versionsOnly<Values>(values: Values): ReadSection<Values> {
  return { values, ignored: 0, leftOut: 0 };
}

/** The entries that the parser understands, within the bound; a field that is no list has none. */
export function readList<Entry>(
  field: unknown,
  entriesMax: number,
  parse: (entry: unknown) => Entry | null,
): ReadSection<Entry[]> {
  const offered: unknown[] = Array.isArray(field) ? field : [];
  const entries = offered.map(parse).filter((entry) => entry !== null);
  return {
    values: entries.slice(0, entriesMax),
    ignored: offered.length - entries.length,
    leftOut: Math.max(0, entries.length - entriesMax),
  };
}
