import type { App } from '#service-kit/http/index.ts';

export interface HealthDeps {
  /** Rejects when the database does not answer. */
  askDatabase: () => Promise<unknown>;
  /** Why limits are not shared as they should be; null when all is well. */
  findLimitsProblem: () => string | null;
}

/**
 * `/healthz`: the process lives. `/readyz`: its database answers, else the 503 of any call without a database. Limits that
 * each process counts for itself do not make it unready; the reason, which may name addresses, is in the console and the log.
 */
export function registerHealth(app: App, deps: HealthDeps): void {
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async () => {
    await deps.askDatabase();
    const limits = deps.findLimitsProblem() === null ? 'ok' : 'each process counts for itself';
    return { status: 'ready', checks: { limits } };
  });
}
