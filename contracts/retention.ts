/**
 * How long each kind of data is kept (NET-8, retention), for both server programs: deletion, what is still shown, a store's time to
 * live, the words of pages and docs/settings.md come from this table. An operator may lengthen some of it.
 */
import { integerSetting, readSettings } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';

const table = {
  traffic: '3 months',
  pairs: '24 hours',
  availability: '3 months',
  bindings: '3 months',
  events: '3 months',
  alerts: '3 months',
  attacks: '1 year',
  scans: '7 days',
  audit: '1 year',
} as const satisfies Record<string, Period>;

export type KeptData = keyof typeof table;

export const keptWhat: Readonly<Record<KeptData, string>> = {
  traffic: 'minutes of traffic, applications and coverage, with their roll-ups and what explains them',
  pairs: 'exact pairs of endpoints, with their roll-ups',
  availability: 'results of probes',
  bindings: 'who had which address, and where servers were',
  events: 'events, other than those of attacks',
  alerts: 'resolved alerts',
  attacks: 'incidents and all that belongs to them, after their last observation',
  scans: 'open ports, and what findings rest on',
  audit: 'the audit trail',
};

/** In this process. */
export const kept: Record<KeptData, Period> = { ...table };

const setting = (name: string, data: KeptData, max: number, sentence: string) => {
  const [count, unit] = table[data].split(' ') as [string, string];
  const min = Number(count);
  return integerSetting(name, min, { min, max, unit: unit.replace(/s?$/, 's') }, sentence);
};

/** Periods that an operator may lengthen. The specification's are the least. */
export const retentionSettings = {
  trafficMonths: setting(
    'SVC_TRAFFIC_RETENTION_MONTHS',
    'traffic',
    24,
    'How long traffic is kept, and who had which address; identical on every service of operations and monitor. Disk grows with it.',
  ),
  incidentYears: setting(
    'SVC_INCIDENT_RETENTION_YEARS',
    'attacks',
    10,
    'How long attacks are kept; identical on every service of operations and monitor.',
  ),
};

/**
 * Keeps data for as long as this environment says. Called before anything is loaded that reads the periods. What is wrong with a
 * value is said by the settings of the program.
 */
export function keepAsSet(environment: Readonly<Record<string, string | undefined>>): void {
  try {
    const { trafficMonths, incidentYears } = readSettings(retentionSettings, environment);
    kept.traffic = `${trafficMonths} months`;
    kept.bindings = kept.traffic;
    kept.attacks = incidentYears === 1 ? '1 year' : `${incidentYears} years`;
  } catch (error) {
    if (!(error instanceof CodedError)) throw error;
  }
}

/** As PostgreSQL reads it. */
export type Period = `${number} ${'hours' | 'days' | 'months' | 'year' | 'years'}`;

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

/** In a code on a wire: `3_months`. */
export const keptCode = (data: KeptData): string => kept[data].replace(' ', '_');

/** At their longest, in milliseconds: a month has up to 31 days, three of them up to 92. */
export function keptMs(data: KeptData): number {
  const [count, unit] = kept[data].split(' ') as [string, string];
  const days = { hours: 1 / 24, days: 1, months: 92 / 3, year: 366, years: 366 }[unit]!;
  return Math.ceil(Number(count) * days) * 86_400_000;
}
