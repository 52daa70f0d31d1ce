/** What needs no account: health, the front page, signing in, and the reference of the customer API. */
import type { Features } from '#operations/features.ts';
import { gatewayCallbacks, type Payments } from '#operations/payments/index.ts';
import { type App, HttpError, hidden } from '#service-kit/http/index.ts';
import type { WriteCheck } from '#service-kit/system/index.ts';
import { type ApiDocsDeps, registerApiDocs } from './api-docs.routes.ts';
import { registerJoin } from './join.routes.ts';
import { type PublicPagesDeps, registerPublicPages } from './pages.ts';

export { createConsoleSocket } from './console-socket.ts';
export { renderErrorPage } from './pages.ts';

/** Call it before other surfaces are registered, so that the policy of error pages holds for theirs too. */
export async function registerPublic(app: App, deps: PublicPagesDeps & ApiDocsDeps & { payments: Payments }) {
  registerPublicPages(app, deps);
  registerJoin(app, deps);
  registerPaymentCallbacks(app, deps);
  registerApiDocs(app, deps);
}

/**
 * `/healthz`: the process lives. `/readyz`: its database takes writes, else 503 with the reason. Limits that
 * each process counts for itself do not make it unready; the reason, which may name addresses, is in the console and the log.
 */
export function registerHealth(
  app: App,
  deps: {
    checkWrites: WriteCheck;
    /** Why limits are not shared as they should be; null when all is well. */
    findLimitsProblem: () => string | null;
  },
): void {
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    const problem = await deps.checkWrites();
    const limits = deps.findLimitsProblem() === null ? 'ok' : 'each process counts for itself';
    return reply.code(problem === null ? 200 : 503).send({
      status: problem === null ? 'ready' : 'not ready',
      checks: { database: problem ?? 'ok', limits },
    });
  });
}

/** `/integrations/NAME`: the gateway tells that a charge has moved. Signed over the raw body, which is read as it is. */
function registerPaymentCallbacks(app: App, deps: Features): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    for (const { path, header } of gatewayCallbacks)
      scope.post(path, { schema: hidden }, async (request, reply) => {
        const signature = request.headers[header];
        const body = request.body;
        const isTaken =
          typeof signature === 'string' &&
          Buffer.isBuffer(body) &&
          (await deps.payments.takeCallback(body, signature));
        if (!isTaken)
          throw new HttpError(401, { code: 'unauthorized', message: 'The signature does not match.' });
        return reply.send({ received: true });
      });
  });
}
