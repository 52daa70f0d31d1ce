/** The whole monitor behind its real HTTP server, on a port and a database of its own. */
import { composeMonitor, type Monitor } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createMonitorServer } from '#monitor/server.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';

export interface MonitorServer extends AsyncDisposable {
  monitor: Monitor;
  database: TestDatabase;
  url: string;
  siteId: number;
  /** Signs in as a person of this role; gives what a browser would send along. */
  signIn(role: 'operator' | 'viewer'): Promise<Visitor>;
}

export interface Visitor {
  cookie: string;
  csrfToken: string;
  /** A page's status and text. */
  get(path: string): Promise<{ status: number; text: string; headers: Headers }>;
  /** Posts a form from a page of ours; `fields` may override the token. */
  post(
    path: string,
    fields?: Record<string, string>,
  ): Promise<{ status: number; text: string; headers: Headers }>;
}

export const testPassword = 'a password of sufficient length';

export async function startMonitorServer(): Promise<MonitorServer> {
  const database = await createTestDatabase('monitor');
  const config = readConfig({ SVC_MONITOR_PORT: '0', SVC_LOG_LEVEL: 'error' });
  const part = { name: 'database', start: async () => {}, stop: async () => {} };
  const { db, pool, reader } = database;
  const monitor = composeMonitor(config, { database: { ...part, db, pool, reader } });
  const site = await monitor.sites.create(systemActor, 'Test site');
  const server = await createMonitorServer(config, monitor);
  await server.start();
  return {
    monitor,
    database,
    url: server.url,
    siteId: site.id,
    async signIn(role) {
      const email = `${role}@monitor.example`;
      await monitor.operators.add({ email, name: role, password: testPassword, role });
      const answer = await fetch(`${server.url}/sign-in`, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'sec-fetch-site': 'same-origin' },
        body: new URLSearchParams({ email, password: testPassword }),
      });
      return createVisitor(server.url, answer.headers.get('set-cookie')!.split(';')[0]!);
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await database.drop();
    },
  };
}

async function createVisitor(url: string, cookie: string): Promise<Visitor> {
  const ask = async (path: string, options: RequestInit) => {
    const answer = await fetch(`${url}${path}`, { redirect: 'manual', ...options });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };
  const html = { accept: 'text/html', cookie };
  const home = await ask('/', { headers: html });
  const csrfToken = /name="csrf_token" value="([^"]+)"/.exec(home.text)?.[1] ?? '';
  return {
    cookie,
    csrfToken,
    get: (path) => ask(path, { headers: html }),
    post: (path, fields = {}) =>
      ask(path, {
        method: 'POST',
        headers: { ...html, 'sec-fetch-site': 'same-origin' },
        body: new URLSearchParams({ csrf_token: csrfToken, ...fields }),
      }),
  };
}
