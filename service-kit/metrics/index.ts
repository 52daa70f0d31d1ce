/**
 * Metrics of a server program in the Prometheus format, and the endpoint that gives them.
 *
 * Events in this process are counted at once; state is read on a scrape, at most every few seconds for any number of
 * scrapers. `/metrics` tells how large a provider is, so it exists only with a configured token and requires it: behind a
 * proxy on the same machine every request comes from the loopback address, so the address proves nothing.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { readBearer } from '#service-kit/credentials/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';

const reuseMs = 5_000;
/** Seconds, from what is cached to what a browser gives up. */
const requestBuckets = [0.005, 0.02, 0.1, 0.5, 2, 10];

export type Meters = ReturnType<typeof createMeters>;

/** `prefix` is the program's, such as `svc_monitor_`. */
export function createMeters(prefix: string) {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, prefix });
  const common = (name: string, help: string, labelNames: string[]) => ({
    name: `${prefix}${name}`,
    help,
    labelNames,
    registers: [registry],
  });
  const gauge = (name: string, help: string, labels: string[] = []) => new Gauge(common(name, help, labels));
  const isDatabaseUp = gauge('database_up', '1 when the database answered this scrape.');
  const connections = gauge(
    'database_connections',
    'Connections of this process, and queries that wait for one.',
    ['state'],
  );
  let lastReadMs = Number.NEGATIVE_INFINITY;
  return {
    contentType: registry.contentType,
    /** Names get the program's prefix. */
    counter: (name: string, help: string, labels: string[]) => new Counter(common(name, help, labels)),
    gauge,
    histogram: (name: string, help: string, labels: string[], buckets: number[]) =>
      new Histogram({ ...common(name, help, labels), buckets }),
    /**
     * All metrics as text. `read` reads stored state, which `show` sets; without an answer `show` is given null, removes what
     * it set, and no stale value remains.
     */
    async render<State>(
      pool: { totalCount: number; idleCount: number; waitingCount: number },
      read: () => Promise<State>,
      show: (state: State | null) => void,
    ): Promise<string> {
      connections.set({ state: 'open' }, pool.totalCount);
      connections.set({ state: 'idle' }, pool.idleCount);
      connections.set({ state: 'waiting' }, pool.waitingCount);
      if (performance.now() - lastReadMs > reuseMs) {
        const state = await read().catch(() => null);
        isDatabaseUp.set(state === null ? 0 : 1);
        show(state);
        if (state !== null) lastReadMs = performance.now();
      }
      return registry.metrics();
    },
  };
}

/** Times requests by the first part of their route, so that no caller's path makes a series. Call it before the routes. */
export function meterRequests(app: App, meters: Meters): void {
  const seconds = meters.histogram(
    'http_request_seconds',
    'Requests that this process has answered, by area and class of status.',
    ['area', 'status'],
    requestBuckets,
  );
  app.addHook('onResponse', (request, reply, done) => {
    const area = request.routeOptions.url?.split('/', 2)[1];
    const status = `${Math.floor(reply.statusCode / 100)}xx`;
    seconds.observe(
      { area: area === undefined ? 'none' : area || 'front', status },
      reply.elapsedTime / 1000,
    );
    done();
  });
}

/** `GET /metrics`. */
export function registerMetrics(
  app: App,
  options: {
    token: string;
    /** Names the setting that holds the token. */
    tokenSetting: string;
    contentType: string;
    render(): Promise<string>;
  },
): void {
  const { token, tokenSetting, contentType } = options;
  app.get('/metrics', async (request, reply) => {
    const given = readBearer(request.raw.rawHeaders);
    if (given === null || !isSame(given, token)) {
      throw new HttpError(
        401,
        { code: 'unauthenticated', message: `Send the token of ${tokenSetting}.` },
        { 'www-authenticate': 'Bearer' },
      );
    }
    const text = await options.render();
    return reply.header('content-type', contentType).send(text);
  });
}

/** Compares texts in constant time. */
function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
