/**
 * Endpoints for supervisors and Prometheus: liveness, readiness, and metrics.
 *
 * `/healthz` and `/readyz` are public and contain no secret. `/metrics` contains host names, so it exists only with a
 * configured token and requires it: behind a proxy on the same machine every request comes from the loopback address,
 * so the address proves nothing.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { Health, Meters } from '#monitor/health/index.ts';
import { readBearer } from '#service-kit/credentials/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';

export interface HealthRouteDeps {
  health: Health;
  meters: Meters;
  database: { pool: { totalCount: number; idleCount: number; waitingCount: number } };
  /** Null: there are no metrics. */
  metricsToken: string | null;
}

export function registerHealth(app: App, deps: HealthRouteDeps): void {
  app.get('/healthz', async () => ({ status: 'alive' }));
  app.get('/readyz', async (_request, reply) => {
    const { isReady, checks } = await deps.health.check();
    return reply
      .code(isReady ? 200 : 503)
      .header('cache-control', 'no-store')
      .send({ status: isReady ? 'ready' : 'not ready', checks });
  });
  const { metricsToken } = deps;
  if (metricsToken === null) return;
  app.get('/metrics', async (request, reply) => {
    const token = readBearer(request.raw.rawHeaders);
    if (token === null || !isSame(token, metricsToken)) {
      throw new HttpError(
        401,
        { code: 'unauthenticated', message: 'Send the token of SVC_MONITOR_METRICS_TOKEN.' },
        { 'www-authenticate': 'Bearer' },
      );
    }
    const text = await deps.meters.render({ health: deps.health, pool: deps.database.pool });
    return reply
      .header('content-type', deps.meters.contentType)
      .header('cache-control', 'no-store')
      .send(text);
  });
}

/** Compares texts in constant time. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
