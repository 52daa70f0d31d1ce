import { gatewayCallbacks, type Payments } from '#operations/payments/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';

/** `/integrations/NAME`: the gateway tells that a charge has moved. Signed over the raw body, which is read as it is. */
export function registerPaymentCallbacks(app: App, deps: { payments: Payments }): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
    for (const { path, header } of gatewayCallbacks)
      scope.post(path, { schema: { hide: true } as object }, async (request, reply) => {
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
