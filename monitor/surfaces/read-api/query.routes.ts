/** `GET` and `POST /api/v1/query`, `GET /api/v1/dimensions`: traffic of the token's site, and what it can be filtered by. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import { Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import type { Answer } from '#monitor/explorer/index.ts';
import { dimensions, type Explorer, parseQueryUrl } from '#monitor/explorer/index.ts';
import type { Amount, Row } from '#service-kit/explorer/index.ts';
import { type App, HttpError, preferredType } from '#service-kit/http/index.ts';
import { tableCsv } from '#service-kit/pages/index.ts';
import { sendCsv } from '#service-kit/web/index.ts';
import { siteOf } from './authenticate.ts';
import { DimensionsAnswer, QueryAnswer, QueryValues, SeriesPoints } from './schemas.ts';

const completionsMax = 100;

export function registerQuery(app: App, deps: { explorer: Explorer }): void {
  const respond = async (
    request: FastifyRequest,
    reply: FastifyReply,
    values: Static<typeof QueryValues>,
  ) => {
    const format = formatOf(request, values.format);
    const answer = await ask(deps.explorer, siteOf(request), values);
    if (format === 'csv') return sendCsv(reply, 'traffic.csv', answerCsv(answer));
    return reply.send(format === 'series' ? answerPoints(answer) : answerJson(answer));
  };
  const response = { 200: Type.Union([QueryAnswer, SeriesPoints]) };
  app.get('/query', { schema: { querystring: QueryValues, response } }, (request, reply) =>
    respond(request, reply, request.query),
  );
  app.post('/query', { schema: { body: QueryValues, response } }, (request, reply) =>
    respond(request, reply, request.body),
  );
  const Completion = Type.Object({
    dimension: Type.Optional(Type.Enum([...dimensions])),
    typed: Type.Optional(Type.String({ maxLength: 253 })),
  });
  app.get(
    '/dimensions',
    { schema: { querystring: Completion, response: { 200: DimensionsAnswer } } },
    async (request) => {
      const { dimension, typed = '' } = request.query;
      const values = dimension
        ? await deps.explorer.complete(siteOf(request), dimension, typed, completionsMax)
        : [];
      return { dimensions: deps.explorer.dimensions.map((name) => ({ name })), values };
    },
  );
}

async function ask(explorer: Explorer, siteId: number, values: Static<typeof QueryValues>): Promise<Answer> {
  const { query, faults } = parseQueryUrl(siteId, values);
  if (faults.length > 0)
    throw new HttpError(422, {
      code: 'validation_failed',
      reason: 'invalid_query',
      message: faults.map((one) => (one.text === '' ? one.message : `${one.text}: ${one.message}`)).join(' '),
      details: { faults },
    });
  try {
    return await explorer.explore(query, { asker: `token of site ${siteId}` });
  } catch (error) {
    const { message } = error as Error;
    if (hasCode(error, 'explorer.busy'))
      throw new HttpError(429, { code: 'rate_limited', message, retryable: true }, { 'retry-after': '5' });
    const reason = hasCode(error, 'explorer.too_many_steps')
      ? 'too_many_steps'
      : hasCode(error, 'facts.too_slow') && 'too_slow';
    if (!reason) throw error;
    throw new HttpError(422, { code: 'validation_failed', reason, message });
  }
}

function formatOf(request: FastifyRequest, asked: string | undefined): 'json' | 'csv' | 'series' {
  if (asked === 'json' || asked === 'csv' || asked === 'series') return asked;
  if (asked !== undefined)
    throw new HttpError(422, {
      code: 'validation_failed',
      reason: 'invalid_query',
      message: 'Use the format json, csv or series.',
    });
  const accept = request.headers.accept ?? '';
  return preferredType(accept, ['application/json', 'text/csv']) === 'text/csv' ? 'csv' : 'json';
}

// An answer as the wire has it: JSON, one point a row, or a table.

const time = (ms: number) => new Date(ms).toISOString();
const amount = ({ inBytes, outBytes, packets }: Amount) => ({
  in_bytes: inBytes,
  out_bytes: outBytes,
  packets,
});
const amountOrNull = (one: Amount | null) => one && amount(one);
const unitOf = (answer: Answer) => (answer.measure === 'bytes' ? ('bit/s' as const) : ('packets/s' as const));

function answerJson(answer: Answer): Static<typeof QueryAnswer> {
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
function answerPoints(answer: Answer): Static<typeof SeriesPoints> {
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
function answerCsv(answer: Answer): string {
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
