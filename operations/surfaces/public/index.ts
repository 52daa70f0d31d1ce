/** What needs no account: health, the front page, signing in, and the reference of the customer API. */
import type { Payments } from '#operations/payments/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type ApiDocsDeps, registerApiDocs } from './api-docs.routes.ts';
import { registerJoin } from './join.routes.ts';
import { type PublicPagesDeps, registerPublicPages } from './pages.ts';
import { registerPaymentCallbacks } from './payment-callbacks.routes.ts';

export { createConsoleSocket } from './console-socket.ts';
export { registerHealth } from './health.routes.ts';
export { renderErrorPage } from './pages.ts';

/** Call it before other surfaces are registered, so that the policy of error pages holds for theirs too. */
export async function registerPublic(
  app: App,
  deps: PublicPagesDeps &
    ApiDocsDeps & {
      payments: Payments;
    },
): Promise<void> {
  registerPublicPages(app, deps);
  registerJoin(app, deps);
  registerPaymentCallbacks(app, deps);
  registerApiDocs(app, deps);
}
