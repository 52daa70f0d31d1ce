/** The table of minutes: exact bytes, and runs of minutes without an observation as one row with the reason. */

import { lossOf, minuteRows } from '#contracts/minute-reasons.ts';
import { hasExactMinutes, type MinuteRow } from '#operations/protect/index.ts';
import {
  type Column,
  type Content,
  code,
  codeColumn,
  formatBitRate,
  formatCount,
  formatPercent,
  formatTime,
  type Html,
  html,
  type Range,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { Gap } from '../../parts/index.ts';

// Coverage, attack and expected traffic of a minute in tables; what is unknown is said with its reason.

/** Why the coverage of a minute is unknown whose attack is known (NET-2.4.3). */
const unchecked = {
  short: 'attack not checked',
  long: 'The attack detector did not watch the whole minute, so the attack may be larger than shown.',
};

function attackOf({ ddosBps, reason }: MinuteRow): Content {
  if (ddosBps !== null) return formatBitRate(ddosBps);
  const known = reason === null ? undefined : minuteRows[reason];
  if (!known) return null;
  return html`<span class="unknown" title="${known.long}">unknown: ${known.short}</span>`;
}

function coverageOf({ coverage, ddosBps, reason }: MinuteRow): Content {
  const isUnchecked = coverage === null && ddosBps !== null && reason === 'detector_incomplete';
  const lost = isUnchecked ? unchecked : lossOf(reason);
  const share = coverage === null ? null : formatPercent(coverage);
  if (!lost) return share;
  if (coverage === 0) return html`<span class="unknown" title="${lost.long}">${lost.short}</span>`;
  return html`<span class="unknown" title="${lost.long}">${share === null ? lost.short : `${share}: ${lost.short}`}</span>`;
}

/** Columns of the table of minutes. */
const judgedColumns: readonly Column<MinuteRow>[] = [
  { key: 'coverage', header: 'Coverage', kind: 'figure', cell: coverageOf },
  {
    key: 'expected',
    header: 'Expected',
    kind: 'figure',
    cell: (row) => (row.expectedBps === null ? null : formatBitRate(row.expectedBps)),
  },
  { key: 'attack', header: 'Attack', kind: 'figure', cell: attackOf },
];

/** Rows of minutes on the page; the files have all. */
export const minutesShown = 60;
/** The others on demand. */
const firstRows = 5;
const minuteMs = 60_000;

/** A minute of an address, or a run of minutes in which nothing was observed. */
type Entry =
  | { kind: 'minute'; row: MinuteRow }
  | ({ kind: 'run' } & Pick<Gap, 'fromMs' | 'toMs' | 'text' | 'why'>);

export interface MinutesSectionOptions {
  /** Newest first. */
  minutes: readonly MinuteRow[];
  /** Why minutes of the range are missing, minute by minute. */
  gaps: readonly Gap[];
  range: Range;
  csvHref: string;
  jsonHref: string;
}

export function minutesSection({ minutes, gaps, range, csvHref, jsonHref }: MinutesSectionOptions): Html {
  const isExact = hasExactMinutes(range);
  const hasDropped = minutes.some((row) => droppedOf(row) > 0);
  return section(
    {
      title: 'Minutes',
      id: 'minutes',
      description: `Exact bytes of IP packets. Below 100 % coverage, part of the minute was not observed; nothing is estimated. ${hasDropped ? 'Dropped is what the hypervisor dropped of attacks; it is in no other column. ' : ''}The table shows the newest ${minutesShown} minutes of the range. The files contain all.`,
    },
    table<Entry>({
      caption: 'Minutes',
      card: { line: ['in', 'out', 'address'] },
      columns: columns.filter(({ key }) => key !== 'dropped' || hasDropped),
      isFirst: (_row, index) => index < firstRows,
      rows: entriesOf(minutes, gaps),
      csvHref: isExact ? csvHref : undefined,
      jsonHref: isExact ? jsonHref : undefined,
      empty: {
        title: 'No minutes in this range',
        text: 'The table lists every complete minute with observed traffic, and the reason where there is none.',
      },
    }),
  );
}

const isObserved = (row: MinuteRow) => row.inboundBps !== null || row.outboundBps !== null;

/** Newest first. What lies after the oldest minute of the table and was not observed is a run. */
export function entriesOf(minutes: readonly MinuteRow[], gaps: readonly Gap[]): Entry[] {
  const observed = new Set(minutes.filter(isObserved).map((row) => row.minute.getTime()));
  const oldestMs = minutes.at(-1)?.minute.getTime() ?? Number.POSITIVE_INFINITY;
  const runs = gaps.filter((gap) => gap.toMs > oldestMs && !observed.has(gap.fromMs));
  const entries: { atMs: number; entry: Entry }[] = [
    ...runs.map((gap) => ({ atMs: gap.toMs - minuteMs, entry: { kind: 'run' as const, ...gap } })),
    // What a run says is not said again for each address.
    ...minutes
      .filter((row) => observed.has(row.minute.getTime()))
      .map((row) => ({ atMs: row.minute.getTime(), entry: { kind: 'minute' as const, row } })),
  ];
  return entries.sort((a, b) => b.atMs - a.atMs).map(({ entry }) => entry);
}

function timeOf(entry: Entry): string {
  const from = formatTime(entry.kind === 'minute' ? entry.row.minute.getTime() : entry.fromMs).replace(
    ' UTC',
    '',
  );
  if (entry.kind === 'minute' || entry.toMs - entry.fromMs <= minuteMs) return from;
  return `${from} to ${formatTime(entry.toMs - minuteMs).slice(11, 16)}`;
}

const columns: readonly Column<Entry>[] = [
  { key: 'minute', header: 'Minute', unit: 'UTC', cell: timeOf },
  codeColumn('address', 'Address', (entry) =>
    entry.kind === 'minute' ? code(entry.row.address) : runLength(entry),
  ),
  figure('in', 'In', 'bytes', (row) => row.inboundBytes),
  figure('out', 'Out', 'bytes', (row) => row.outboundBytes),
  figure('dropped', 'Dropped', 'bytes', droppedOf),
  figure('packets', 'Packets', undefined, (row) => (row.pps === null ? null : Math.round(row.pps * 60))),
  ...judgedColumns.map(
    ({ key, header, kind = 'figure', cell }): Column<Entry> => ({
      ...{ key, header, kind },
      cell: (entry) => {
        if (entry.kind === 'minute') return cell(entry.row);
        return key === 'coverage'
          ? html`<span class="unknown" title="${entry.why ?? ''}">${entry.text}</span>`
          : '';
      },
    }),
  ),
];

/** Bytes of attacks that the hypervisor dropped, in and out. */
function droppedOf({ droppedInboundBytes, droppedOutboundBytes }: MinuteRow): number {
  return (droppedInboundBytes ?? 0) + (droppedOutboundBytes ?? 0);
}

function runLength({ fromMs, toMs }: Extract<Entry, { kind: 'run' }>): string {
  const minutes = Math.round((toMs - fromMs) / minuteMs);
  return minutes === 1 ? '1 minute' : `${formatCount(minutes)} minutes`;
}

function figure(
  key: string,
  header: string,
  unit: string | undefined,
  pick: (row: MinuteRow) => number | null,
): Column<Entry> {
  return {
    key,
    header,
    ...(unit === undefined ? {} : { unit }),
    kind: 'figure',
    cell: (entry) => {
      if (entry.kind === 'run') return '';
      const value = pick(entry.row);
      return value === null ? null : formatCount(value);
    },
  };
}
