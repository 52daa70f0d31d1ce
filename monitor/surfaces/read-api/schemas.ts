/** What the read API answers; a field that no schema names can't leave. */
import { Type } from 'typebox';
import { dimensions, sources } from '#monitor/explorer/index.ts';
import { requestsPerMinute, underWayMax } from '#monitor/read-tokens/index.ts';
import { measures } from '#service-kit/explorer/index.ts';

const Nullable = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()]);
const Dimension = Type.Enum([...dimensions]);
const Rates = Type.Array(Nullable(Type.Number()), { description: 'One for each step; null is a gap.' });

const Amount = Type.Object({
  in_bytes: Type.Number({ description: 'To the local addresses.' }),
  out_bytes: Type.Number({ description: 'From the local addresses.' }),
  packets: Nullable(Type.Number({ description: 'Both ways; null where the measure is bytes.' })),
});
const Value = Type.Object({ value: Nullable(Type.String()), label: Type.String() });
const Row = Type.Object({
  key: Type.Array(Value, { description: 'One for each dimension of `by`.' }),
  ...Amount.properties,
  share: Type.Number({ description: 'Of the total of the measure, 0 to 1.' }),
  previous: Nullable(Amount),
  rates: Rates,
});

export const QueryAnswer = Type.Object({
  from: Type.String({ format: 'date-time' }),
  to: Type.String({ format: 'date-time' }),
  step_seconds: Nullable(Type.Integer()),
  measure: Type.Enum([...measures]),
  unit: Type.Enum(['bit/s', 'packets/s']),
  by: Type.Array(Dimension),
  source: Type.Enum([...sources], { description: 'The facts that the numbers were read from.' }),
  grains: Type.Array(Type.Enum(['minutes', 'tens', 'hours', 'days'])),
  newest: Nullable(Type.String({ format: 'date-time' })),
  total: Amount,
  previous_total: Nullable(Amount),
  rows: Type.Array(Row),
  rest: Nullable(
    Type.Object({
      groups: Type.Integer(),
      ...Amount.properties,
      share: Type.Number(),
      previous: Nullable(Amount),
      rates: Rates,
    }),
  ),
  times: Type.Array(Type.String({ format: 'date-time' })),
  series: Type.Object({
    in_bps: Rates,
    out_bps: Rates,
    pps: Rates,
    observed_minutes: Type.Array(Type.Integer()),
    previous: Rates,
  }),
  percentile_95: Nullable(Type.Number()),
  percentile_95_in: Nullable(Type.Number()),
  percentile_95_out: Nullable(Type.Number()),
  limits: Type.Array(
    Type.Object({ code: Type.String(), dimension: Nullable(Dimension), message: Type.String() }),
  ),
});

/** One point of one line, for programs that want rows: `format=series`. */
export const SeriesPoints = Type.Array(
  Type.Object({
    time: Type.String({ format: 'date-time' }),
    series: Type.String(),
    value: Nullable(Type.Number()),
  }),
);

export const DimensionsAnswer = Type.Object({
  dimensions: Type.Array(Type.Object({ name: Dimension })),
  values: Type.Array(Value),
});

const text = (description: string) => Type.Optional(Type.String({ maxLength: 20_000, description }));

/** The same members in a URL and in a body. */
export const QueryValues = Type.Object(
  {
    q: text('Filters, such as `app:github.com peer:198.51.100.0/24 -server:web-1`.'),
    range: text('The newest time: `15m`, `6h`, `30d`. By default 24h.'),
    from: text('With `to` in place of `range`: UTC, such as 2026-11-21T10:00Z, or unix milliseconds.'),
    to: text('The end of the range, exclusive.'),
    by: Type.Optional(
      Type.Union(
        [Type.String({ maxLength: 200 }), Type.Array(Type.String({ maxLength: 40 }), { maxItems: 4 })],
        { description: 'At most two dimensions, separated by a comma.' },
      ),
    ),
    step: text('`auto`, `none`, or whole minutes in seconds that divide a day.'),
    measure: text('`bytes` or `packets`.'),
    order: text('By what rows are the largest: `size` (the default, both directions), `in` or `out`.'),
    top: text('Rows of the answer, 1 to 1000; the others are `rest`. By default 10.'),
    compare: text('`previous`: also the period before.'),
    format: text('`json`, `csv`, or `series` for one point a row.'),
  },
  { additionalProperties: false },
);

// The OpenAPI document of the read API, made of the schemas that the routes check with.

const answers = {
  '401': { description: 'No token, or one that is unknown, expired or revoked.' },
  '422': { description: 'A value can not be read; the message says what to write.' },
  '429': { description: 'Too many requests of this token; `Retry-After` says when to go on.' },
};

const queryAnswers = {
  '200': {
    description: 'Sums, and steps with gaps as null.',
    content: {
      'application/json': { schema: { anyOf: [QueryAnswer, SeriesPoints] } },
      'text/csv': { schema: { type: 'string' } },
    },
  },
  ...answers,
};

export function openapiDocument(): object {
  return {
    openapi: '3.1.0',
    info: {
      title: 'Read API of the monitor',
      version: '1',
      description: `Traffic of one site. At most ${requestsPerMinute} requests a minute and ${underWayMax} at a time for each token.`,
      license: { name: 'Proprietary' },
    },
    security: [{ token: [] }],
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
    paths: {
      '/api/v1/query': {
        get: {
          operationId: 'query',
          summary: 'Sums traffic over filters, by up to two dimensions, in steps',
          parameters: Object.entries(QueryValues.properties).map(([name, schema]) => ({
            ...{ name, in: 'query', required: false, schema },
          })),
          responses: queryAnswers,
        },
        post: {
          operationId: 'queryByBody',
          summary: 'The same, with the values in a JSON body',
          requestBody: { content: { 'application/json': { schema: QueryValues } } },
          responses: queryAnswers,
        },
      },
      '/api/v1/dimensions': {
        get: {
          operationId: 'dimensions',
          summary: 'Dimensions, and values of one that hold a text',
          parameters: ['dimension', 'typed'].map((name) => ({
            ...{ name, in: 'query', required: false, schema: { type: 'string' } },
          })),
          responses: {
            '200': {
              description: 'Dimensions and values.',
              content: { 'application/json': { schema: DimensionsAnswer } },
            },
            ...answers,
          },
        },
      },
      '/api/v1/sites/{siteId}/metrics': {
        get: {
          operationId: 'siteMetrics',
          summary: 'The site of the token in the Prometheus format',
          parameters: [{ name: 'siteId', in: 'path', required: true, schema: { type: 'integer' } }],
          responses: {
            '200': { description: 'Metrics.', content: { 'text/plain': { schema: { type: 'string' } } } },
            ...answers,
            '404': { description: 'Another site than that of the token.' },
          },
        },
      },
    },
  };
}
