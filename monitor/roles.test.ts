// Slow: starts roles of the program as processes.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createReadTokens, requestsPerMinute, underWayMax } from '#monitor/read-tokens/index.ts';
import { createLimits } from '#service-kit/limits/index.ts';
import { startRedis } from '#service-kit/redis/testing/redis-server.ts';
import { allRoles } from '#service-kit/roles/index.ts';
import { compose } from './composition.ts';
import { readConfig } from './config.ts';
import { type MonitorRole, monitorRoles } from './roles.ts';

const namesOf = (roles: readonly MonitorRole[]) =>
  compose(readConfig({}), { reporter: silentReporter, roles: new Set(roles) }).loops.map(({ name }) => name);

test('the roles together do everything that serve does, and each thing is of one role', () => {
  const everything = compose(readConfig({}), { reporter: silentReporter }).loops.map(({ name }) => name);
  const roles = [...allRoles(monitorRoles)];
  // Every process watches its disk, and may read live windows, so each connects to their store.
  const common = ['disk watch', 'live store'];
  const ofRoles = roles.flatMap((role) => namesOf([role]).filter((name) => !common.includes(name)));
  assert.deepEqual([...common, ...ofRoles].sort(), everything.sort());
  assert.deepEqual(namesOf(['web']), [...common, 'limits']);
  assert.deepEqual(namesOf(['live']), [...common, 'loop sync_ops_protect_live']);
  assert.ok(namesOf(['feeds']).includes('loop sync_ops_ddos'));
  assert.ok(!namesOf(['feeds', 'loops']).includes('loop sync_ops_protect_live'));
});

test('two processes count the requests of a read token together', async () => {
  await using redis = await startRedis();
  const clock = createTestClock(0);
  const start = async () => {
    const limits = createLimits({ url: redis.url, program: 'monitor', clock, reporter: silentReporter });
    await limits.part.start();
    assert.equal(limits.findProblem(), null);
    const db = () => assert.fail('nothing is read');
    return { limits, tokens: createReadTokens({ db, clock, limits }) };
  };
  const [one, two] = await Promise.all([start(), start()]);
  const admit = (i: number) => (i % 2 === 0 ? one : two).tokens.admit('token');
  const open = await Promise.all(Array.from({ length: underWayMax + 1 }, (_, i) => admit(i)));
  assert.equal(open.filter(({ isAdmitted }) => isAdmitted).length, underWayMax);
  for (const each of open) if (each.isAdmitted) await each.end();
  for (let i = underWayMax; i < requestsPerMinute; i += 1) {
    const each = await admit(i);
    assert.ok(each.isAdmitted, `request ${i}`);
    await each.end();
  }
  for (const i of [0, 1]) {
    const refused = await admit(i);
    assert.ok(!refused.isAdmitted && refused.retryAfterSeconds <= 60);
    assert.match(refused.why, /120 requests within a minute/);
  }
  await Promise.all([one.limits.part.stop(), two.limits.part.stop()]);
});

/** A monitor of its own command line; resolves when it is ready. */
async function startMonitor(t: TestContext, dir: string, only: string) {
  const program = fileURLToPath(new URL('../svc.ts', import.meta.url));
  const child = spawn(process.execPath, [program, 'monitor', 'serve', '--only', only], {
    env: {
      PATH: process.env.PATH,
      SVC_DATA_DIR: dir,
      SVC_MONITOR_PORT: '0',
      SVC_LOG_FORMAT: 'json',
      SVC_NVD_URL: '',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const ended = once(child, 'exit').then(([code]) => code as number | null);
  const url = await new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stderr! }).on('line', (line) => {
      const found = /"ready".*"url":"([^"]+)"/.exec(line)?.[1];
      if (found !== undefined) resolve(found);
    });
    void ended.then((code) => reject(new Error(`monitor ended with ${code}`)));
  });
  const end = () => {
    child.kill('SIGTERM');
    return ended;
  };
  return { url, end };
}

test('a process without the role web has only its health, joins the embedded database of its machine, and stops cleanly', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'svc-monitor-roles-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  const web = await startMonitor(t, dir, 'web');
  const rest = await startMonitor(t, dir, 'inbox,feeds,live,loops');
  for (const { url } of [web, rest]) {
    assert.equal((await fetch(`${url}/healthz`)).status, 200);
    const ready = await fetch(`${url}/readyz`);
    assert.equal(ready.status, 200, await ready.text());
  }
  assert.equal((await fetch(`${web.url}/sign-in`)).status, 200);
  for (const path of ['/sign-in', '/agent/v1/plan', '/api/v1/openapi.json'])
    assert.equal((await fetch(rest.url + path)).status, 404, path);
  assert.equal(await rest.end(), 0);
  assert.equal(await web.end(), 0);
});
