/** Values that bodies of JSON may hold, and few schemas have a place for. */
import { seededRandom } from '#common/random/index.ts';

const hostileValues: readonly unknown[] = [
  ...[null, true, [], {}, [null], '', ' ', 'x'.repeat(70_000), '\0', 'a\0b', '\ud800', 'a\udc00', '\u202e'],
  ...[0, -1, -0, 0.5, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 63, 2 ** 64, 1e21, 1e22, 1e300, 1e308, -1e308, 5e-324],
  ...['2026-12-31T23:59:60Z', '0000-01-01T00:00:00Z', '0001-01-01T00:00:00+23:59', '10000-01-01T00:00:00Z'],
  ...[
    '9999-12-31T23:59:59-23:59',
    '2026-02-30T00:00:00Z',
    '2026-06-16T10:00:00Z[Europe/Berlin]',
    '2026-06-16',
  ],
  ...[
    '::ffff:203.0.113.10',
    '203.0.113.300',
    '0x7f.1',
    '00000000-0000-0000-0000-000000000000',
    'NaN',
    '1e400',
  ],
];

/** The value with one of its members, at any depth, replaced. */
function replaceMember(value: unknown, random: (below: number) => number, by: unknown): unknown {
  if (typeof value !== 'object' || value === null || random(6) === 0) return by;
  const names = Object.keys(value);
  const chosen = names[random(names.length)];
  if (chosen === undefined) return by;
  const member = replaceMember((value as Record<string, unknown>)[chosen], random, by);
  if (Array.isArray(value)) return value.with(Number(chosen), member);
  return { ...value, [chosen]: member };
}

/** So many bodies, each the valid one with one hostile value in a place of it; the same ones for a seed. */
export function* hostileBodies(valid: unknown, count: number, seed: number): Generator<unknown> {
  const uniform = seededRandom(seed);
  const random = (below: number) => Math.floor(uniform() * below);
  for (let i = 0; i < count; i += 1)
    yield replaceMember(valid, random, hostileValues[random(hostileValues.length)]);
}
