/** `GET` and `POST /api/v1/query`, `GET /api/v1/dimensions`: traffic of the token's site, and what it can be filtered by. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { hasCode } from '#common/errors/index.ts';
import { type Answer, dimensions, type Explorer, parseQueryUrl } from '#monitor/explorer/index.ts';
import { type App, HttpError, preferredType } from '#service-kit/http/index.ts';
import { sendCsv } from '#service-kit/web/index.ts';
import { siteOf } from './authenticate.ts';
import { DimensionsAnswer, QueryAnswer, QueryValues, SeriesPoints } from './schemas.ts';
import { answerCsv, answerJson, answerPoints } from './write-answer.ts';

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
