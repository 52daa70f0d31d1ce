/** Coverage, attack and expected traffic of a minute in tables; what is unknown is said with its reason. */
import { lossOf, minuteRows } from '#contracts/minute-reasons.ts';
import type { MinuteRow } from '#operations/protect/index.ts';
import { type Column, type Content, formatBitRate, formatPercent, html } from '#service-kit/pages/index.ts';

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
export const judgedColumns: readonly Column<MinuteRow>[] = [
  { key: 'coverage', header: 'Coverage', kind: 'figure', cell: coverageOf },
  {
    key: 'expected',
    header: 'Expected',
    kind: 'figure',
    cell: (row) => (row.expectedBps === null ? null : formatBitRate(row.expectedBps)),
  },
  { key: 'attack', header: 'Attack', kind: 'figure', cell: attackOf },
];
