/** What needs no account: health, and the reference of the customer API. */
import { buildOpenApi } from '#contracts/customer-api/index.ts';
import type { App } from '#service-kit/http/index.ts';

export interface PublicDeps {
  /** Rejects when the database does not answer. */
  isDatabaseReady: () => Promise<void>;
}

export async function registerPublic(app: App, deps: PublicDeps): Promise<void> {
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
