/**
 * How long each kind of data is kept (NET-8, retention), for both server programs: deletion, what is still shown, a store's time to
 * live and the words of pages come from this table.
 */
export const kept = {
  /** Minutes of traffic, applications and coverage, their roll-ups, and what explains them. */
  traffic: '3 months',
  /** Exact pairs of endpoints and their roll-ups. */
  pairs: '24 hours',
  /** Results of probes. */
  availability: '3 months',
  /** Who had which address, and where servers were. */
  bindings: '3 months',
  events: '3 months',
  /** Resolved alerts. */
  alerts: '3 months',
  /** Incidents and all that belongs to them. */
  attacks: '1 year',
  /** Open ports and what findings rest on. */
  scans: '7 days',
  audit: '1 year',
} as const satisfies Record<string, Period>;

/** As PostgreSQL reads it. */
export type Period = `${number} ${'hours' | 'days' | 'months' | 'year' | 'years'}`;
export type KeptData = keyof typeof kept;

const words = [
  '',
  'one',
  'two',
  'three',
  'four',
  'five',
  'six',
  'seven',
  'eight',
  'nine',
  'ten',
  'eleven',
  'twelve',
];

/** In a sentence: `three months`, `24 hours`. */
export function keptText(data: KeptData): string {
  const [count, unit] = kept[data].split(' ') as [string, string];
  return `${words[Number(count)] ?? count} ${unit}`;
}

/** At their longest, in milliseconds: a month has up to 31 days, three of them up to 92. */
export function keptMs(data: KeptData): number {
  const [count, unit] = kept[data].split(' ') as [string, string];
  const days = { hours: 1 / 24, days: 1, months: 92 / 3, year: 366, years: 366 }[unit]!;
  return Math.ceil(Number(count) * days) * 86_400_000;
}
