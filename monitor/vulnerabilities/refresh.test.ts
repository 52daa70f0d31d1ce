import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, beforeEach, test } from 'node:test';
import { createReporter } from '#common/reporter/index.ts';
import { compose } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { readFixes } from './packages/fix-store.ts';
import type { RefreshResult } from './refresh.ts';
import * as store from './store.ts';
import { type NvdRecord, records } from './testing/records/index.ts';
import { createRefreshWorld, type RefresherOptions, type RefreshWorld } from './testing/refresh-world.ts';
import type { NvdFault } from './testing/start-nvd.ts';

let world: RefreshWorld;
before(async () => {
  world = await createRefreshWorld();
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  await world.database.pool.query('truncate vulnerability_products, vulnerability_advisories');
  await world.database.pool.query("update vulnerability_source set failures = 0, not_before = '2000-01-01Z'");
  await world.nvd.plan();
  await world.nvd.setRecords(null);
  await world.nvd.limitPages(2_000);
  await world.nvd.asked();
});

const key = '11111111-2222-3333-4444-555555555555';
const ignore = () => {};
const refresh = async (options: RefresherOptions = {}) =>
  (await world.createRefresher(options).runOnce(ignore)) as RefreshResult;
const listStored = async () =>
  new Map((await store.listProducts(world.database.db)).map((product) => [product.product, product]));
const cvesOf = async (product: string) =>
  (await store.readAdvisories(world.database.db, product))?.map(({ cve }) => cve).sort();
/** Numbers of records with a criterion of these names. */
const expectedOf = (names: readonly string[], of: readonly NvdRecord[] = records) =>
  of
    .filter(({ cve }) => names.some((name) => JSON.stringify(cve.configurations ?? []).includes(`:${name}:`)))
    .map(({ cve }) => cve.id)
    .sort();
const gaps = (times: readonly { atMs: number }[]) =>
  times.slice(1).map(({ atMs }, i) => atMs - times[i]!.atMs);

test('NET-2.6.3: every product is fetched once in 24 hours, and only names of products are sent', async () => {
  const result = await refresh();
  assert.deepEqual([result.error, result.left, result.refreshed.length], [null, [], 11]);
  assert.deepEqual(await cvesOf('openssh'), expectedOf(['openbsd:openssh']));
  assert.deepEqual(await cvesOf('vsftpd'), expectedOf(['vsftpd_project:vsftpd', 'beasts:vsftpd']));
  assert.deepEqual(await cvesOf('nginx'), expectedOf(['f5:nginx', 'nginx:nginx', 'f5:nginx_open_source']));
  assert.equal((await listStored()).get('openssh')!.deferred, 3);
  const asked = await world.nvd.asked();
  for (const { url, headers } of asked) {
    const query = new URL(url, 'http://nvd').searchParams;
    assert.deepEqual([...query.keys()], ['virtualMatchString', 'noRejected', 'resultsPerPage', 'startIndex']);
    assert.match(query.get('virtualMatchString')!, /^cpe:2\.3:a:[a-z_0-9]+:[a-z_0-9]+(:\*){8}$/);
    const names = Object.keys(headers).sort();
    const plain = [
      'accept',
      'accept-encoding',
      'accept-language',
      'connection',
      'host',
      'sec-fetch-mode',
      'user-agent',
    ];
    assert.deepEqual(names, plain);
  }
  await world.pass(86_000_000);
  assert.deepEqual((await refresh()).refreshed, []);
  assert.deepEqual(await world.nvd.asked(), []);
  await world.pass(400_001);
  assert.equal((await refresh()).refreshed.length, 11);
});

test('trackers of distributions are read once in 24 hours; one that can not be read is tried again after an hour', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-trackers-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const write = (status: string) =>
    writeFileSync(
      join(folder, 'debian.json'),
      JSON.stringify({
        openssh: { 'CVE-2024-6387': { releases: { bookworm: { status, fixed_version: '1:9.2p1-3' } } } },
      }),
    );
  const passWith = async (seconds: number) => {
    await world.pass(seconds * 1_000);
    await refresh({ trackers: [folder] });
    return (await readFixes(world.database.db, 'openssh')).map((fix) => `${fix.status} ${fix.fixedIn}`);
  };
  write('resolved');
  assert.deepEqual(await passWith(0), ['fixed 1:9.2p1-3']);
  write('open');
  assert.deepEqual(await passWith(86_000), ['fixed 1:9.2p1-3'], 'not due');
  assert.deepEqual(await passWith(401), ['affected null']);
  writeFileSync(join(folder, 'debian.json'), '{');
  assert.deepEqual(await passWith(86_401), ['affected null'], 'what was read before stays');
  write('resolved');
  assert.deepEqual(await passWith(3_000), ['affected null']);
  assert.deepEqual(await passWith(700), ['fixed 1:9.2p1-3']);
});

test('a pass that is stopped between two trackers reads no other, and the next pass reads them', async (t) => {
  const [first, second] = ['a', 'b'].map(() => mkdtempSync(join(tmpdir(), 'svc-trackers-')));
  t.after(() => [first, second].map((folder) => rmSync(folder!, { recursive: true })));
  writeFileSync(join(first!, 'debian.json'), '{');
  writeFileSync(
    join(second!, 'debian.json'),
    JSON.stringify({ nginx: { 'CVE-2021-23017': { releases: { bookworm: { status: 'open' } } } } }),
  );
  const trackers = [first!, second!];
  // Past what the test before read.
  await world.pass(90_000_000);
  const stopping = new AbortController();
  await world.createRefresher({ trackers }).runOnce(() => stopping.abort(), stopping.signal);
  assert.deepEqual(await readFixes(world.database.db, 'nginx'), []);
  await refresh({ trackers });
  assert.equal((await readFixes(world.database.db, 'nginx')).length, 1);
});

test('NET-2.6.4: without a key no two requests are within 6 seconds, also over restarts; with one, within 0.6', async () => {
  let left = 1;
  let restarts = 0;
  while (left > 0) {
    // Ends at every fifth request, as a process that is stopped; the last product that it began is begun anew.
    let sent = 0;
    const stopping = new AbortController();
    const refresher = world.createRefresher({
      around: async (fetch) => {
        sent += 1;
        if (sent === 5) stopping.abort();
        return fetch();
      },
    });
    const result = (await refresher.runOnce(ignore, stopping.signal)) as RefreshResult;
    left = result.left.length;
    restarts += 1;
    assert.ok(restarts < 30);
  }
  const slow = await world.nvd.asked();
  assert.ok(restarts > 3 && slow.length > 20);
  assert.ok(Math.min(...gaps(slow)) >= 6_000, `${Math.min(...gaps(slow))} ms`);
  assert.ok(Math.max(...gaps(slow)) <= 6_001, 'and no slower');
  await world.pass(86_400_000);
  await refresh({ apiKey: key });
  const fast = await world.nvd.asked();
  assert.equal(fast[0]!.headers.apikey, key);
  assert.ok(Math.min(...gaps(fast)) >= 600 && Math.max(...gaps(fast)) <= 601);
});

test('while a request may be under way no other is allowed, so that a process that dies then leaves no gap too short', async () => {
  const held: number[] = [];
  await refresh({
    timeoutMs: 60_000,
    around: async (fetch) => {
      held.push(await readPause());
      return fetch();
    },
  });
  assert.ok(held.length > 10 && held.every((pause) => pause === 66), String(held));
});

const readPause = async (): Promise<number> =>
  (
    await world.database.pool.query<{ pause: number }>(
      'select extract(epoch from not_before - (select at from test_clock))::float8 as pause from vulnerability_source',
    )
  ).rows[0]!.pause;
/** OpenSSH is the first that is due. */
const makeDue = async () => {
  await world.pass(90_000_000);
  await world.database.pool.query(
    "update vulnerability_products set attempted_at = null where product = 'openssh'",
  );
};

const failures: [NvdFault, RegExp, number][] = [
  [{ kind: 'status', status: 403 }, /refuses requests/, 0],
  [{ kind: 'status', status: 429, retryAfter: '7200' }, /fewer requests/, 7_200],
  [{ kind: 'status', status: 503, retryAfter: '90' }, /not available/, 90],
  [{ kind: 'status', status: 503, retryAfter: '99999999999999' }, /not available/, 0],
  [{ kind: 'status', status: 503, retryAfter: '-5' }, /not available/, 0],
  [{ kind: 'status', status: 404 }, /does not know/, 0],
  [{ kind: 'redirect' }, /redirect/, 0],
  [{ kind: 'closed' }, /could not be reached/, 0],
  [{ kind: 'cut' }, /cut off/, 0],
  [{ kind: 'slow' }, /in time/, 0],
  [{ kind: 'silent' }, /in time/, 0],
  [{ kind: 'half_json' }, /can not be read/, 0],
  [{ kind: 'page_of_html' }, /can not be read/, 0],
  [{ kind: 'null' }, /can not be read/, 0],
  [{ kind: 'no_total' }, /can not be read/, 0],
  [{ kind: 'other_page' }, /can not be read/, 0],
  [{ kind: 'empty_page' }, /fewer records/, 0],
];

test('NET-2.6.3: a failed refresh keeps the records and their age, and the pause doubles and outlives the process', async () => {
  await refresh();
  const good = await listStored();
  for (const [fault, sentence, asked] of failures) {
    await makeDue();
    await world.nvd.plan(fault, fault);
    // Only an answer that never ends is waited for in vain.
    const isEndless = fault.kind === 'slow' || fault.kind === 'silent';
    const result = await refresh({ timeoutMs: isEndless ? 400 : 60_000 });
    assert.match(result.error ?? '', sentence, JSON.stringify(fault));
    const now = (await listStored()).get('openssh')!;
    assert.equal(now.refreshedAtMs, good.get('openssh')!.refreshedAtMs, 'the age of the records');
    assert.deepEqual([now.records, now.error], [good.get('openssh')!.records, result.error]);
    // "Fewer records" is seen behind an answer that was well formed.
    const pauseMin = fault.kind === 'empty_page' ? 6 : Math.max(15, asked);
    const pause = await readPause();
    assert.ok(pause >= pauseMin && pause <= 86_400, `${pause} s after ${JSON.stringify(fault)}`);
  }
  await world.database.pool.query("update vulnerability_source set failures = 0, not_before = '2000-01-01Z'");
  const pauses: number[] = [];
  for (let failure = 0; failure < 10; failure += 1) {
    await world.nvd.plan({ kind: 'status', status: 503 });
    await refresh();
    pauses.push(await readPause());
    await world.pass(pauses.at(-1)! * 1_000 + 1);
  }
  pauses.forEach((pause, i) => {
    const full = Math.min(3_600, 30 * 2 ** i);
    assert.ok(pause >= full / 2 && pause <= full, `pause ${i}: ${pause} s`);
  });
  await world.nvd.plan({ kind: 'status', status: 429, retryAfter: '7200' });
  await refresh();
  await world.nvd.asked();
  const early = await refresh();
  assert.match(early.error!, /allowed in 120 minutes/);
  assert.deepEqual(await world.nvd.asked(), [], 'another process keeps the pause too');
});

test('pages are read whole: a total that changes begins the reading anew, and one that never rests is a failure', async () => {
  await world.nvd.limitPages(3);
  await world.nvd.plan({ kind: 'none' }, { kind: 'total_changes' });
  assert.equal((await refresh()).error, null);
  assert.deepEqual(await cvesOf('openssh'), expectedOf(['openbsd:openssh']));
  await makeDue();
  const turn: NvdFault[] = [{ kind: 'none' }, { kind: 'total_changes' }];
  await world.nvd.plan(...turn, ...turn, ...turn);
  assert.match((await refresh()).error!, /changed while it was read/);
});

test('a record that can not be read is set aside alone, and what was stored of it stays', async () => {
  await refresh();
  const first = expectedOf(['openbsd:openssh']);
  for (const kind of ['malformed_record', 'foreign_value'] as const) {
    await makeDue();
    await world.nvd.plan({ kind });
    assert.equal((await refresh()).error, null);
    assert.equal((await listStored()).get('openssh')!.unreadable, 1);
    const lost = kind === 'foreign_value' ? 1 : 0;
    assert.equal((await cvesOf('openssh'))!.length, first.length - lost);
  }
});

test('records that the database gave up are removed; a product that is empty at once is not believed', async () => {
  await refresh();
  const fewer = records.filter(({ cve }) => cve.id !== 'CVE-2024-6387');
  await world.nvd.setRecords(fewer);
  await world.pass(90_000_000);
  assert.equal((await refresh()).error, null);
  assert.deepEqual(await cvesOf('openssh'), expectedOf(['openbsd:openssh'], fewer));
  await world.nvd.setRecords([]);
  await world.pass(90_000_000);
  assert.match((await refresh()).error!, /not believed/);
  assert.deepEqual(await cvesOf('openssh'), expectedOf(['openbsd:openssh'], fewer));
});

test('the key is in no line of the log and in no table', async () => {
  let log = '';
  const reporter = createReporter({
    ...{ program: 'monitor', format: 'json', level: 'debug' },
    write: (line: string) => {
      log += line;
    },
  });
  await world.nvd.plan({ kind: 'status', status: 403 });
  const runLoop = async (apiKey: string) => {
    const { loop } = world.createRefresher({ apiKey, reporter });
    await loop.runOnce();
    await loop.stop();
  };
  await runLoop(key);
  assert.match(log, /vulnerability database can not be read/);
  await world.pass(4_000_000);
  await runLoop('wrong-key-0000');
  assert.ok(!log.includes(key) && !log.includes('wrong-key-0000'));
  const { rows } = await world.database.pool.query('select * from vulnerability_products');
  assert.ok(!JSON.stringify(rows).includes('wrong-key'));
  const asked = await world.nvd.asked();
  assert.ok(asked.every(({ url }) => !url.includes('key')));
});

test('NET-2.6.4: serve refreshes unless SVC_VULNERABILITY_SYNC is 0', () => {
  const loops = (environment: Record<string, string>) =>
    compose(readConfig({ SVC_LOG_LEVEL: 'error', ...environment })).loops.map(({ name }) => name);
  assert.ok(loops({}).includes('loop refresh_vulnerabilities'));
  assert.ok(!loops({ SVC_VULNERABILITY_SYNC: '0' }).includes('loop refresh_vulnerabilities'));
});

test('without a database nothing is fetched, and a demo world asks none but one of its machine', async () => {
  const { db } = world.database;
  const composed = (source: Record<string, string>) => {
    const config = readConfig({ SVC_LOG_LEVEL: 'error', ...source });
    const part = { name: 'database', start: async () => {}, stop: async () => {} };
    return compose(config, { database: { ...world.database, ...part, db } }).vulnerabilities;
  };
  const isDemo = { SVC_DEMO_WORLD: '1' };
  for (const source of [
    { SVC_NVD_URL: '' },
    isDemo,
    { ...isDemo, SVC_NVD_URL: 'https://mirror.example/cves' },
  ]) {
    const vulnerabilities = composed(source);
    const result = await vulnerabilities.refresh(ignore);
    assert.match((result as RefreshResult).error!, /SVC_NVD_URL is empty/);
    assert.equal(vulnerabilities.source, null);
  }
  assert.deepEqual(await world.nvd.asked(), []);
  assert.equal(composed({ ...isDemo, SVC_NVD_URL: world.nvd.url }).source?.isDemo, true);
});

test('the database of tests keeps the rules of the real one: windows of change, keys, pages', async () => {
  const ask = async (query: string, headers = {}) => {
    const response = await fetch(`${world.nvd.url}?${query}`, { headers });
    const text = await response.text();
    return response.status === 200 ? JSON.parse(text).totalResults : response.headers.get('message');
  };
  const window = (start: string, end: string) =>
    `lastModStartDate=${start}T00:00:00.000Z&lastModEndDate=${end}T00:00:00.000Z`;
  assert.equal(await ask(window('2025-11-15', '2025-12-15')), records.length);
  assert.equal(await ask(window('2026-01-01', '2026-01-02')), 0);
  assert.match(await ask(window('2025-01-01', '2025-12-31')), /Invalid date range/);
  assert.match(await ask('lastModStartDate=2025-01-01T00:00:00.000Z'), /Both/);
  assert.match(await ask('', { apiKey: 'unknown' }), /Invalid apiKey/);
  assert.match(await ask('resultsPerPage=2001'), /Invalid parameter/);
  assert.match(await ask('virtualMatchString=openssh'), /Invalid CPE/);
  assert.equal(await ask('noRejected'), records.length - 1);
});
