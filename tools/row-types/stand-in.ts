/**
 * A value that stands in for any argument of a store function: it has every property and method, and can be iterated and
 * converted. Statements are only described and never run, so its value does not matter.
 */

/** What code looks for to tell apart kinds of values; the stand-in is none of these. */
const absent = new Set<PropertyKey>(['then', 'toOperationNode', 'isOperationNodeSource', 'toJSON']);

/** Names that are called rather than read. No column or option has one of them. */
const methods = new Set<PropertyKey>(
  [Array, String, Date, Map, Set, Number, Uint8Array].flatMap((type) =>
    Object.getOwnPropertyNames(type.prototype).filter((name) => name !== 'length' && name !== 'size'),
  ),
);

/** `known` gives properties with real values, such as a database. */
export function createStandIn(known: Readonly<Record<string, unknown>> = {}): unknown {
  const value: unknown = new Proxy(
    {},
    {
      get(_target, property) {
        if (absent.has(property)) return undefined;
        if (property === Symbol.toPrimitive) return (hint: string) => (hint === 'string' ? '1' : 1);
        if (property === Symbol.iterator) return () => [value].values();
        if (property in known && typeof property === 'string') return known[property];
        if (property === 'length' || property === 'size') return 1;
        if (typeof property === 'symbol') return undefined;
        if (property === 'entries') return () => [[0, value]].values();
        return methods.has(property) ? () => value : value;
      },
      has: () => true,
    },
  );
  return value;
}
