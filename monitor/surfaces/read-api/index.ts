/**
 * The read API under `/api/v1`: traffic of one site for programs with a read token (docs/read-api.md).
 *
 * The token decides the site: no request names one, except the metrics, whose address has to be that of the token's site. It
 * answers through the same function as the console's explorer.
 */
import type { FastifyInstance } from 'fastify';
import type { Explorer } from '#monitor/explorer/index.ts';
import type { ReadTokens } from '#monitor/read-tokens/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { authenticateWith } from './authenticate.ts';
import { registerSiteMetrics, type SiteMetricsDeps } from './metrics.routes.ts';
import { registerQuery } from './query.routes.ts';
import { openapiDocument } from './schemas.ts';

export async function registerReadApi(
  app: App,
  deps: SiteMetricsDeps & { explorer: Explorer; readTokens: ReadTokens },
): Promise<void> {
  // It describes and holds no data, so that tools can read it before they have a token.
  app.get('/api/v1/openapi.json', async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(JSON.stringify(openapiDocument())),
  );
  await app.register(
    async (plugin) => {
      const scope = plugin as unknown as FastifyInstance as unknown as App;
      scope.addHook('onRequest', authenticateWith(deps.readTokens));
      registerQuery(scope, deps);
      registerSiteMetrics(scope, deps);
    },
    { prefix: '/api/v1' },
  );
}
