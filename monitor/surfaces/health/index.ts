/** Endpoints for supervisors and Prometheus: liveness, readiness, and metrics. `/healthz` and `/readyz` are public. */
import type { Health, MonitorMeters } from '#monitor/health/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Limits } from '#service-kit/limits/index.ts';
import { registerMetrics } from '#service-kit/metrics/index.ts';

export function registerHealth(
  app: App,
  deps: {
    health: Health;
    meters: MonitorMeters;
    database: { pool: { totalCount: number; idleCount: number; waitingCount: number } };
    limits: Pick<Limits, 'findProblem'>;
    /** Null: there are no metrics. */
    metricsToken: string | null;
  },
): void {
  const { health, meters, database, limits } = deps;
  app.get('/healthz', async () => ({ status: 'alive' }));
  app.get('/readyz', async (_request, reply) => {
    const { isReady, checks } = await health.check();
    return reply.code(isReady ? 200 : 503).send({ status: isReady ? 'ready' : 'not ready', checks });
  });
  if (deps.metricsToken === null) return;
  meters.watch(app);
  registerMetrics(app, {
    token: deps.metricsToken,
    tokenSetting: 'SVC_MONITOR_METRICS_TOKEN',
    contentType: meters.contentType,
    render: () => meters.render({ health, pool: database.pool, limits }),
  });
}
