import type { App } from '#service-kit/http/index.ts';

export interface HealthDeps {
  /** Rejects when the database does not answer. */
  askDatabase: () => Promise<unknown>;
}

/** `/healthz`: the process lives. `/readyz`: its database answers, else the 503 of any call without a database. */
export function registerHealth(app: App, deps: HealthDeps): void {
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async () => {
    await deps.askDatabase();
    return { status: 'ready' };
  });
}
