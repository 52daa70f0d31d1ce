/**
 * G2: whether the time that a verdict takes tells why a token was refused. As in dudect: classes by turns in random order,
 * the slowest measurements cut off, Welch's t between every two classes; |t| < 4.5 for all of them.
 */

import type { KeyRow } from '#operations/api-keys/store.ts';
import { verifyKey } from '#operations/api-keys/verify-key.ts';
import { digestSecret, mintCredential } from '#service-kit/credentials/index.ts';

export const refusalClasses = [
  'unknown id',
  'wrong first character',
  'wrong last character',
  'revoked',
  'expired',
  'deactivated',
] as const;
type RefusalClass = (typeof refusalClasses)[number];

/** A verdict on a token; the planted one leaves early where nothing has to be compared. */
type Verify = (token: string) => Promise<unknown>;

export interface TimingResult {
  /** Largest |t| of all pairs, and the pair. */
  worst: number;
  pair: string;
  tried: number;
}

export async function proveTiming(options: {
  perClass: number;
  isPlanted?: boolean;
  random: () => number;
}): Promise<TimingResult> {
  const subjects = createSubjects();
  // The row is at hand before the clock starts: finding it is the database's time, and not a verdict's.
  let row: KeyRow | null = null;
  const lookup = async () => row;
  const verify: Verify = options.isPlanted
    ? async (token) => {
        return (await lookup()) === null ? null : verifyKey(lookup, token);
      }
    : (token) => verifyKey(lookup, token);
  const times = new Map(refusalClasses.map((one) => [one, new Float64Array(options.perClass)]));
  const total = options.perClass * refusalClasses.length;
  const filled = new Map<RefusalClass, number>(refusalClasses.map((one) => [one, 0]));
  for (let i = 0; i < 200_000; i += 1) {
    const subject = subjects.tokens[i % subjects.tokens.length]!;
    row = subject.row;
    await verify(subject.token);
  }
  for (let i = 0; i < total; ) {
    // Every class once, in another order each time: what the machine does meanwhile meets all of them alike.
    for (const { name, token, row: held } of shuffled(subjects.tokens, options.random)) {
      row = held;
      const start = process.hrtime.bigint();
      await verify(token);
      const end = process.hrtime.bigint();
      const at = filled.get(name)!;
      if (at < options.perClass) times.get(name)![at] = Number(end - start);
      filled.set(name, at + 1);
      i += 1;
    }
  }
  return { ...worstPair(times), tried: total };
}

function createSubjects(): { tokens: { name: RefusalClass; token: string; row: KeyRow | null }[] } {
  const tokens = refusalClasses.map((name) => {
    const { id, secret, token } = mintCredential('svc');
    const row: KeyRow = {
      keyId: id,
      digest: digestSecret(secret),
      scope: 'full',
      organizationId: 1,
      personId: 1,
      isLive: name.startsWith('wrong'),
      isUseStale: false,
      tenants: [{ id: 1, name: 'One', slug: 'one', status: 'ACTIVE', currency: 'USD', createdAt: '' }],
    };
    const other = (character: string) => (character === 'A' ? 'B' : 'A');
    const presented = {
      'wrong first character': `svc_${id}_${other(secret[0]!)}${secret.slice(1)}`,
      'wrong last character': `svc_${id}_${secret.slice(0, -1)}${other(secret.at(-1)!)}`,
    };
    const shown = presented[name as keyof typeof presented] ?? token;
    // Flat, as the network delivers it: a joined text is flattened at its first use, which takes time of its own.
    return { name, token: Buffer.from(shown).toString('latin1'), row: name === 'unknown id' ? null : row };
  });
  return { tokens };
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  return items
    .map((item) => ({ item, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);
}

/** The slowest tenth is what the collector and the scheduler did. */
function worstPair(times: ReadonlyMap<RefusalClass, Float64Array>): { worst: number; pair: string } {
  const all = Float64Array.from([...times.values()].flatMap((one) => [...one])).sort();
  const limit = all[Math.floor(all.length * 0.9)]!;
  const kept = [...times].map(([name, values]) => ({
    name,
    ...momentsOf(values.filter((value) => value <= limit)),
  }));
  let found = { worst: 0, pair: '' };
  for (const [index, a] of kept.entries()) {
    for (const b of kept.slice(index + 1)) {
      const t = Math.abs(a.mean - b.mean) / Math.sqrt(a.variance / a.count + b.variance / b.count);
      if (t > found.worst) found = { worst: t, pair: `${a.name} and ${b.name}` };
    }
  }
  return found;
}

function momentsOf(values: Float64Array): { count: number; mean: number; variance: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return { count: values.length, mean, variance };
}
