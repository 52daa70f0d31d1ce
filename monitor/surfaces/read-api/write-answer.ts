/** An answer as the wire has it: JSON, one point a row, or a table. */
import type { Static } from 'typebox';
import type { Answer } from '#monitor/explorer/index.ts';
import type { Amount, Row } from '#service-kit/explorer/index.ts';
import { tableCsv } from '#service-kit/pages/index.ts';
import type { QueryAnswer, SeriesPoints } from './schemas.ts';

const time = (ms: number) => new Date(ms).toISOString();
const amount = ({ inBytes, outBytes, packets }: Amount) => ({
  in_bytes: inBytes,
  out_bytes: outBytes,
  packets,
});
const amountOrNull = (one: Amount | null) => one && amount(one);
const unitOf = (answer: Answer) => (answer.measure === 'bytes' ? ('bit/s' as const) : ('packets/s' as const));

export function answerJson(answer: Answer): Static<typeof QueryAnswer> {
  const { series, rest } = answer;
  return {
    from: time(answer.from * 1000),
    to: time(answer.to * 1000),
    step_seconds: answer.stepSeconds,
    measure: answer.measure,
    unit: unitOf(answer),
    by: [...answer.by],
    source: answer.source,
    grains: [...answer.grains],
    newest: answer.newestMs === null ? null : time(answer.newestMs),
    total: amount(answer.total),
    previous_total: amountOrNull(answer.previousTotal),
    rows: answer.rows.map((row) => ({
      key: [...row.key],
      ...amount(row.amount),
      share: row.share ?? 0,
      previous: amountOrNull(row.previous),
      rates: [...row.rates],
    })),
    rest: rest && {
      groups: rest.groups,
      ...amount(rest.amount),
      share: rest.share ?? 0,
      previous: amountOrNull(rest.previous),
      rates: [...rest.rates],
    },
    times: answer.timesMs.map(time),
    series: {
      in_bps: [...series.inBps],
      out_bps: [...series.outBps],
      pps: [...series.pps],
      observed_minutes: [...series.minutes],
      previous: [...series.previous],
    },
    percentile_95: answer.percentile95,
    percentile_95_in: answer.percentile95In,
    percentile_95_out: answer.percentile95Out,
    limits: [...answer.limits],
  };
}

const nameOf = (row: Row) => row.key.map((one) => one.label).join(' · ');

/** Each row's rates over time, then those of all others; without rows in and out. */
export function answerPoints(answer: Answer): Static<typeof SeriesPoints> {
  const { rows, rest, series } = answer;
  const grouped = [
    ...rows.map((row) => ({ name: nameOf(row), rates: row.rates })),
    ...(rest ? [{ name: 'Others', rates: rest.rates }] : []),
  ];
  const whole =
    answer.measure === 'packets'
      ? [{ name: 'Packets', rates: series.pps }]
      : [
          { name: 'In', rates: series.inBps },
          { name: 'Out', rates: series.outBps },
        ];
  return (answer.by.length > 0 ? grouped : whole).flatMap(({ name, rates }) =>
    rates.map((value, i) => ({ time: time(answer.timesMs[i]!), series: name, value })),
  );
}

/** One line a row; the last one is all others. */
export function answerCsv(answer: Answer): string {
  const { by, rows, rest } = answer;
  const lines: { values: readonly (string | null)[]; of: Pick<Row, 'amount' | 'share' | 'previous'> }[] = [
    ...rows.map((row) => ({ values: row.key.map((one) => one.label), of: row })),
    ...(rest ? [{ values: by.map((_, i) => (i === 0 ? 'Others' : null)), of: rest }] : []),
    ...(by.length === 0
      ? [{ values: [], of: { amount: answer.total, share: 1, previous: answer.previousTotal } }]
      : []),
  ];
  return tableCsv(
    [
      ...by.map((dimension, i) => ({
        field: dimension,
        value: (line: (typeof lines)[number]) => line.values[i] ?? null,
      })),
      { field: 'in_bytes', value: ({ of }) => of.amount.inBytes },
      { field: 'out_bytes', value: ({ of }) => of.amount.outBytes },
      { field: 'packets', value: ({ of }) => of.amount.packets },
      { field: 'share', value: ({ of }) => of.share },
      { field: 'previous_in_bytes', value: ({ of }) => of.previous?.inBytes },
      { field: 'previous_out_bytes', value: ({ of }) => of.previous?.outBytes },
    ],
    lines,
  );
}
