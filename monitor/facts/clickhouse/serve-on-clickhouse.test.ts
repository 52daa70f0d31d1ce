// Slow: starts two programs beside a ClickHouse.
/** Processes of `./svc monitor serve` with their facts on one ClickHouse, from an upload to the read API. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { silentReporter } from '#common/reporter/index.ts';
import { nameApplication } from '#monitor/applications/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { captureMinute, createSpool, host, testMinute, usageRow } from '#monitor/testing/index.ts';
import { postUpload } from '#monitor/testing/post-upload.ts';
import { createTestDatabase } from '#service-kit/testing/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { createFacts, parseFactsUrl } from '../index.ts';
import { createFactClient } from './connect.ts';
import { startHttpEngine } from './testing/start-http-engine.ts';

const program = fileURLToPath(new URL('../../../svc.ts', import.meta.url));
const address = '192.0.2.10';

interface Running extends AsyncDisposable {
  /** Fields of the line that says that it is ready. */
  ready: { url?: string };
}

/** `serve` in these roles until it is ready; throws its output where it ends before. */
async function startServe(roles: string, settings: Record<string, string>): Promise<Running> {
  const child = spawn(process.execPath, [program, 'monitor', 'serve', '--only', roles], {
    env: { ...process.env, ...settings },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const lines: string[] = [];
  for await (const line of createInterface(child.stderr)) {
    lines.push(line);
    if (!line.startsWith('{')) continue;
    const said = JSON.parse(line) as { message: string; url?: string };
    if (said.message === 'ready') return { ready: said, [Symbol.asyncDispose]: () => end(child) };
  }
  throw new Error(lines.join('\n'));
}

async function end(child: ChildProcess): Promise<void> {
  child.stderr?.resume();
  child.kill('SIGTERM');
  await once(child, 'exit');
}

test('an upload to serve is applied by another process and read through the API, with all facts on ClickHouse', async () => {
  await using engine = await startHttpEngine();
  const folder = mkdtempSync(join(tmpdir(), 'svc-facts-'));
  const settings = {
    SVC_DATA_DIR: folder,
    SVC_MONITOR_PORT: '0',
    SVC_FACTS_URL: engine.url,
    SVC_LOG_FORMAT: 'json',
    SVC_MAC_VENDOR_LOOKUP_URL: '',
    SVC_NVD_URL: '',
  };
  try {
    await using serve = await startServe('web,loops', settings);
    await using _worker = await startServe('inbox', { ...settings, SVC_MONITOR_HEALTH_PORT: '0' });
    // This process makes the tokens and waits for the inbox.
    const here = compose(readConfig(settings), { embedded: 'existing', reporter: silentReporter });
    await here.database.start();
    await using _here = { [Symbol.asyncDispose]: () => here.database.stop() };
    const siteId = (await here.sites.create(systemActor, 'Test site')).id;
    const { token } = await here.sensors.createToken(systemActor, siteId);
    const node = { host_name: 'node-1', node: 'node-1', sensor_version: '0.1.0' };
    const { credential } = (await here.sensors.enrol({ token, ...node }))!;
    const usage = [usageRow({ name: 'example.net', client: address, clientBytes: 600, serverBytes: 6000 })];
    const minute = captureMinute({ hosts: [host(address, 6000, 600)], usage });
    const receipt = await postUpload(serve.ready.url!, credential, createSpool().upload([minute]));
    assert.equal(receipt, 'accepted');
    const isApplied = async () =>
      (await here.database.pool.query("select 1 from inbox_uploads where state = 'applied'")).rowCount === 1;
    await until('the upload is applied', 60_000, isApplied);
    const access = await here.readTokens.create(systemActor, siteId, {
      name: 'Test',
      days: '30',
    });
    const range = [testMinute, testMinute + 60].map((second) => new Date(second * 1000).toISOString());
    const ask = async (query: string) => {
      const url = `${serve.ready.url}/api/v1/query?from=${range[0]}&to=${range[1]}&step=60&${query}`;
      const answer = await fetch(url, { headers: { authorization: `Bearer ${access.token}` } });
      return (await answer.json()) as {
        rows: { key: { value: string }[]; in_bytes: number }[];
        total: { in_bytes: number; out_bytes: number };
      };
    };
    for (const [by, value] of [
      ['address', address],
      ['application', 'example.net'],
      ['peer', '198.51.100.7'],
    ] as const) {
      const { rows, total } = await ask(`by=${by}`);
      assert.deepEqual([total.in_bytes, total.out_bytes], [6000, 600], by);
      assert.deepEqual(
        rows.map((row) => [row.key[0]!.value, row.in_bytes]),
        [[value, 6000]],
      );
    }
    const stored = await here.database.pool.query(
      'select (select count(*) from host_minutes) + (select count(*) from application_facts) as n',
    );
    assert.equal(stored.rows[0].n, 0, 'no facts are in PostgreSQL');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('the start says what is wrong with ClickHouse, and never the password', async () => {
  await using engine = await startHttpEngine();
  await using database = await createTestDatabase('monitor');
  const start = async (url: string) => {
    const { part } = createFacts({ db: () => database.db, nameApplication }, parseFactsUrl(url));
    await part.start();
    await part.stop();
  };
  const wrong = engine.url.replace(engine.password, 'wrong-secret');
  for (const [url, expected] of [
    [wrong, /refuses the user facts or the password\. Check SVC_FACTS_URL/],
    [engine.url.replace(/facts$/, 'absent'), /has no database absent: create it first\. Check SVC_FACTS_URL/],
    [engine.url.replace(/:\d+\/facts$/, ':1/facts'), /127\.0\.0\.1:1 does not answer: ECONNREFUSED/],
  ] as const)
    await assert.rejects(start(url), (error: Error) => {
      assert.match(error.message, expected);
      const all = inspect(error, { depth: 9, showHidden: true });
      assert.ok(!all.includes(engine.password) && !all.includes('wrong-secret'), all);
      return true;
    });
  await start(engine.url);
  await start(engine.url);
  await using another = await createTestDatabase('monitor');
  const { part } = createFacts({ db: () => another.db, nameApplication }, parseFactsUrl(engine.url));
  await assert.rejects(
    part.start(),
    /holds the traffic facts of another installation\. Name an empty database/,
  );
  await part.stop();
  const newer = createFactClient(parseFactsUrl(engine.url));
  await newer.command({ query: 'insert into schema_versions (version) select 99' });
  await newer.close();
  await assert.rejects(start(engine.url), /made by a newer program: their version is 99/);
  for (const url of [engine.url.replace('clickhouse:', 'mysql:'), engine.url.replace(/\/facts$/, '')])
    assert.throws(
      () => readConfig({ SVC_FACTS_URL: url }),
      (error: Error) =>
        /SVC_FACTS_URL must be a URL/.test(error.message) && !error.message.includes(engine.password),
    );
});
