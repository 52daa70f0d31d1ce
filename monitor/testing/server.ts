/** The whole monitor behind its real HTTP server, on its own port and database. */
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { Overrides } from '#monitor/overrides.ts';
import { testWrapper } from '#service-kit/secrets/testing/test-secrets.ts';
import '#service-kit/sessions/testing/cheap-passwords.ts';
import { createTestDatabase, type TestDatabase } from '#service-kit/testing/index.ts';

export type MonitorServer = Awaited<ReturnType<typeof startMonitorServer>>;

export type Visitor = ReturnType<typeof createVisitor>;

export const testPassword = 'a password of sufficient length';

/** `settings` are environment variables; without a database it makes one. */
export async function startMonitorServer(
  settings: Readonly<Record<string, string>> = {},
  {
    database: given,
    ...options
  }: Pick<Overrides, 'reporter' | 'feeds' | 'clock' | 'evidenceObjects'> & { database?: TestDatabase } = {},
) {
  const database = given ?? (await createTestDatabase('monitor'));
  const config = readConfig(
    { SVC_MONITOR_PORT: '0', SVC_LOG_LEVEL: 'error', SVC_MAC_VENDOR_LOOKUP_URL: '', ...settings },
    options.feeds,
  );
  const part = { name: 'database', start: async () => {}, stop: async () => {} };
  const { db, pool, reader } = database;
  const monitor = compose(config, {
    database: { ...part, db, pool, reader },
    ...options,
    keyWrapper: testWrapper,
  });
  const site = await monitor.sites.create(systemActor, 'Test site');
  const server = await monitor.createServer();
  await server.start();
  const people: { [role in 'operator' | 'viewer']?: ReturnType<typeof monitor.operators.add> } = {};
  return {
    monitor,
    database,
    url: server.url,
    siteId: site.id,
    /** All routes of the server. */
    routes: server.routes,
    /** Signs in as a person of this role; returns the browser's headers. */
    async signIn(role: 'operator' | 'viewer'): Promise<Visitor> {
      people[role] ??= monitor.operators.add({
        email: `${role}@monitor.example`,
        name: role,
        password: testPassword,
        role,
      });
      const cookie = (await monitor.sessions.start((await people[role]).id)).split(';')[0]!;
      return createVisitor(server.url, cookie, (await monitor.sessions.read(cookie))!.csrfToken);
    },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await database.drop();
    },
  };
}

function createVisitor(url: string, cookie: string, csrfToken: string) {
  const ask = async (path: string, options: RequestInit) => {
    const answer = await fetch(`${url}${path}`, { redirect: 'manual', ...options });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };
  const html = { accept: 'text/html', cookie };
  return {
    cookie,
    csrfToken,
    /** A page's status and text. */
    get: (path: string) => ask(path, { headers: html }),
    /** Posts a form of one of our pages; `fields` may override the token. */
    post: (path: string, fields: Record<string, string> = {}) =>
      ask(path, {
        method: 'POST',
        headers: { ...html, 'sec-fetch-site': 'same-origin' },
        body: new URLSearchParams({ csrf_token: csrfToken, ...fields }),
      }),
  };
}
