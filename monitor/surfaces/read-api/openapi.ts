/** The OpenAPI document of the read API, made of the schemas that the routes check with. */
import { requestsPerMinute, underWayMax } from '#monitor/read-tokens/index.ts';
import { DimensionsAnswer, QueryAnswer, QueryValues, SeriesPoints } from './schemas.ts';

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
