/**
 * Every HTTP server under the name of a stranger, as a browser asks it whose name service was changed (DNS rebinding). A
 * server that is not in the table answers under no names at all, because `createHttpServer` accepts none without rules.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { createVulnerabilityDatabase, databasePath } from '#demo/vulnerability-database/index.ts';
import { compose as composeMonitor } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { compose as composeOperations } from '#operations/composition.ts';
import { readOperationsSettings } from '#operations/config.ts';
import { createWorld, password } from '#operations/testing/create-world.ts';
import type { HttpServer } from '#service-kit/http/index.ts';
import { askAs } from '#service-kit/http/testing/ask-as.ts';
import { claimPort } from './testing/free-port.ts';

const stranger = 'evil.example';
const metricsToken = 'a-token-for-metrics-7f3e9b52';

interface Served {
  url: string;
  routes: readonly { method: string; url: string }[];
  /** Of a signed-in operator. */
  cookie?: string;
}

interface Row {
  start(t: TestContext): Promise<Served>;
  /** What programs call, under any name; each pattern has a route. */
  open: readonly RegExp[];
  /** Of these, what is public. */
  public: readonly string[];
}

const health = [/^\/healthz$/, /^\/readyz$/];
const metrics = /^\/metrics$/;

const servers: Record<string, Row> = {
  operations: {
    async start(t) {
      const world = await createWorld({ demoWorld: true, metricsToken });
      t.after(() => world[Symbol.asyncDispose]());
      const email = 'operator@staff.test';
      await world.accounts.createPerson(systemActor, {
        ...{ email, name: 'Operator', password, staffRole: 'operator' },
      });
      return { url: world.url, routes: world.routes, cookie: await world.signIn(email, password) };
    },
    open: [
      ...[...health, metrics, /^\/api\/v[12]\//, /^\/api\/admin\/v1\//],
      ...[/^\/integrations\/stripe$/, /^\/docs\/api\/openapi\.json$/],
    ],
    public: ['/healthz', '/readyz', '/docs/api/openapi.json'],
  },
  'operations without the role web': {
    async start(t) {
      const settings = { ...readOperationsSettings({}), metricsToken };
      const operations = await composeOperations(settings, {
        ...{ reporter: silentReporter, roles: new Set(['jobs'] as const) },
      });
      return serve(t, await operations.createServer());
    },
    open: [...health, metrics],
    public: ['/healthz', '/readyz'],
  },
  monitor: {
    async start(t) {
      const folder = await mkdtemp(join(tmpdir(), 'svc-mail-'));
      const server = await startMonitorServer({
        ...{ SVC_DEMO_WORLD: '1', SVC_MAIL_FOLDER: folder, SVC_MONITOR_METRICS_TOKEN: metricsToken },
      });
      t.after(async () => {
        await server[Symbol.asyncDispose]();
        await rm(folder, { recursive: true, force: true });
      });
      const { cookie } = await server.signIn('operator');
      return { url: server.url, routes: server.routes, cookie };
    },
    open: [
      ...[...health, metrics, /^\/agent\/v1\//, /^\/integrations\/operations\/vm-destroyed$/],
      ...[/^\/api\/v1\/(query|dimensions|openapi\.json)$/, /^\/api\/v1\/sites\/:siteId\/metrics$/],
    ],
    public: ['/healthz', '/readyz', '/api/v1/openapi.json'],
  },
  'monitor without the role web': {
    async start(t) {
      const config = readConfig({ SVC_MONITOR_METRICS_TOKEN: metricsToken });
      const monitor = composeMonitor(config, {
        ...{ reporter: silentReporter, roles: new Set(['inbox'] as const) },
      });
      return serve(t, await monitor.createServer());
    },
    open: [...health, metrics],
    public: ['/healthz', '/readyz'],
  },
  "the demo's vulnerability database": {
    async start(t) {
      const port = await claimPort();
      const database = createVulnerabilityDatabase(port);
      await database.start();
      t.after(() => database.stop());
      return { url: `http://127.0.0.1:${port}`, routes: [{ method: 'GET', url: databasePath }] };
    },
    open: [],
    public: [],
  },
};

async function serve(t: TestContext, server: HttpServer): Promise<Served> {
  await server.start();
  t.after(() => server.stop());
  return server;
}

for (const [name, row] of Object.entries(servers))
  test(`${name}: 421 under a foreign host name, except on paths that only programs call`, async (t) => {
    const { url, routes, cookie = '' } = await row.start(t);
    const opened: string[] = [];
    const shown: string[] = [];
    for (const route of routes.filter(({ method }) => !['HEAD', 'OPTIONS'].includes(method))) {
      const path = route.url.replaceAll(/:\w+/g, '1').replaceAll('*', 'x');
      const headers = { cookie, accept: 'text/html' };
      const { status, text } = await askAs(stranger, url + path, { method: route.method, headers });
      if (status === 421) assert.match(text, /SVC_\w+_PUBLIC_URL|127\.0\.0\.1/, path);
      else opened.push(route.url);
      // A browser sends cookies to programs' paths as well: none of them may listen to one.
      if (status === 200) shown.push(route.url);
    }
    const isExpected = (path: string) => row.open.some((pattern) => pattern.test(path));
    assert.deepEqual(opened.filter((path) => !isExpected(path)).sort(), []);
    for (const pattern of row.open)
      assert.ok(
        opened.some((path) => pattern.test(path)),
        String(pattern),
      );
    assert.deepEqual(
      shown.filter((path) => !row.public.includes(path)),
      [],
    );
    assert.equal((await askAs(stranger, `${url}/nothing-here`)).status, 421);
    const own = routes.find((route) => route.method === 'GET' && !route.url.includes(':'))!.url;
    for (const host of ['localhost:8080', '127.0.0.1', '[::1]:8080', '10.20.30.40:8080'])
      assert.notEqual((await askAs(host, url + own)).status, 421, host);
  });
