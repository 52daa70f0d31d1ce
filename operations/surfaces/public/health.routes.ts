import type { App } from '#service-kit/http/index.ts';
import type { WriteCheck } from '#service-kit/system/index.ts';

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
