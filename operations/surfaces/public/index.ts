/** What needs no account: health, the front page, signing in, and the reference of the customer API. */
import { buildOpenApi } from '#contracts/customer-api/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { type PublicPagesDeps, registerPublicPages } from './pages.ts';

export { renderErrorPage } from './pages.ts';

export interface PublicDeps extends PublicPagesDeps {
  /** Rejects when the database does not answer. */
  isDatabaseReady: () => Promise<void>;
}

/** Call it before other surfaces are registered, so that the policy of error pages holds for theirs too. */
export async function registerPublic(app: App, deps: PublicDeps): Promise<void> {
  registerPublicPages(app, deps);
  const openApi = JSON.stringify(buildOpenApi());
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async () => {
    await deps.isDatabaseReady();
    return { status: 'ready' };
  });
  app.get('/docs/api/openapi.json', async (_request, reply) =>
    reply
      .header('access-control-allow-origin', '*')
      .header('cache-control', 'public, max-age=300')
      .type('application/json; charset=utf-8')
      .send(openApi),
  );
  app.get('/developers/api', async (_request, reply) => reply.redirect('/docs/api/', 301));
}
