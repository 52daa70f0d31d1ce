// Slow: makes the telemetry of a site's history, and stores it in a monitor.
/** The simulated site in a real monitor, by its sensor API: what is stored, that nothing of it counts twice, and its label. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { createDemoWorld } from '#monitor/commands/seed-demo.ts';
import { readConfig } from '#monitor/config.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { sitePages } from '#monitor/surfaces/console/frame.ts';
import { type MonitorServer, startMonitorServer } from '#monitor/testing/server.ts';
import { readDemoSettings } from '../config.ts';
import type { MonitorPart } from '../demo-file.ts';
import { attackOfDay } from './attacks.ts';
import { gapOfDay, incidentsOf } from './build-upload.ts';
import { loadSite } from './load-site.ts';
import { createMonitorCalls, type MonitorCalls } from './monitor-calls.ts';
import { observeMinute } from './observe-minute.ts';
import { planSite, seedOfDemo, siteCidrs } from './plan.ts';
import type { SiteState } from './site-state.ts';

const whole = planSite(seedOfDemo);
const day = 86_400;

/** The newest attack that is over for an hour at least. */
function lastAttack() {
  const nowSeconds = Date.now() / 1000;
  for (let at = nowSeconds; ; at -= day) {
    const attack = attackOfDay(whole.seed, at);
    if (attack && attack.endMinute < nowSeconds - 3_600) return attack;
  }
}

const attack = lastAttack();
/** Two hours of two hypervisors, one of them under the attack. */
const other = (attack.hypervisor + 1) % whole.hypervisors.length;
const plan = { ...whole, hypervisors: [attack.hypervisor, other].map((at) => whole.hypervisors[at]!) };
const endMinute = attack.endMinute + 600;
const fromMinute = endMinute - 7_200;

/** Seeds the demo world as `serve` does at every start. */
async function seed(server: MonitorServer, settings: Record<string, string>): Promise<MonitorPart> {
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-simulated-'));
  try {
    const config = readConfig({ SVC_DATA_DIR: dataDir, SVC_DEMO_WORLD: '1', ...settings });
    await createDemoWorld(config, server.monitor).start();
    return JSON.parse(readFileSync(join(dataDir, 'monitor', 'demo.json'), 'utf8')) as MonitorPart;
  } finally {
    rmSync(dataDir, { recursive: true });
  }
}

const settingsOf = (nodes: readonly string[]) => ({
  SVC_DEMO_SIMULATED_NODES: nodes.join(','),
  SVC_DEMO_SIMULATED_CIDRS: siteCidrs.join(','),
});

/** Loads the two hours; `killAfter` sends it ends without knowing what became of the last one. */
async function load(
  server: MonitorServer,
  tokens: Readonly<Record<string, string>>,
  state: SiteState,
  killAfter = Number.POSITIVE_INFINITY,
): Promise<SiteState> {
  const { signal } = new AbortController();
  const real = createMonitorCalls(server.url, signal);
  let sent = 0;
  const calls: MonitorCalls = {
    ...real,
    async send(...args) {
      const outcome = await real.send(...args);
      assert.equal(outcome.kind, 'stored', JSON.stringify(outcome));
      sent += 1;
      if (sent === killAfter) throw new Error('killed');
      return outcome;
    },
  };
  let disk = JSON.stringify(state);
  const write = (value: SiteState) => {
    disk = JSON.stringify(value);
  };
  const clock = createTestClock(endMinute * 1000 + 5_000);
  const pace = { pause: async () => {} };
  const deps = { clock, reporter: silentReporter, calls, pace, plan, tokens, write, tell: () => {}, signal };
  await loadSite({ ...deps, state }, false).catch((error: Error) => assert.equal(error.message, 'killed'));
  return JSON.parse(disk) as SiteState;
}

/** What the plan says of the two hours, by address. */
function plannedBytes(): Map<string, number> {
  const sums = new Map<string, number>();
  for (const hypervisor of plan.hypervisors)
    for (let minute = fromMinute; minute < endMinute; minute += 60) {
      const gap = gapOfDay(plan.seed, hypervisor.index, minute);
      if (gap && minute >= gap.fromMinute && minute < gap.endMinute) continue;
      for (const { address, rxBytes } of observeMinute(plan, hypervisor, minute).hosts)
        sums.set(address, (sums.get(address) ?? 0) + rxBytes);
    }
  return sums;
}

test('begun again after kills, the monitor has every minute of the simulated site once, and its attack', async () => {
  await using server = await startMonitorServer({ SVC_DEMO_WORLD: '1' });
  const nodes = plan.hypervisors.map(({ node }) => node);
  const { simulated_tokens: tokens } = await seed(server, settingsOf(nodes));
  assert.deepEqual(Object.keys(tokens), nodes);
  let state: SiteState = { seed: plan.seed, fromMinute, sensors: {} };
  for (const killAfter of [1, 2, 1]) state = await load(server, tokens, state, killAfter);
  // Nodes with a credential need no token any more.
  state = await load(server, {}, state);
  await server.monitor.inbox.drain();
  const { pool } = server.database;
  const { rows } = await pool.query(
    `select host(h.address) as address, sum(h.rx_bytes)::float8 as bytes from host_minutes h
      join sites s on s.id = h.site_id and s.is_simulated where not h.is_foreign group by 1`,
  );
  assert.deepEqual(new Map(rows.map((row) => [row.address, row.bytes])), plannedBytes());
  const planned = plan.hypervisors.flatMap((one) => incidentsOf(plan, one, { fromMinute, endMinute }));
  const incidents = await pool.query(
    "select id, site_id as site, class from incidents where state = 'recovered'",
  );
  assert.deepEqual(
    incidents.rows.map((row) => row.class),
    [attack.class],
  );
  assert.equal(new Set(planned.map(({ id }) => id)).size, 1);
  const [{ id, site }] = incidents.rows;
  const visitor = await server.signIn('viewer');
  const curve = JSON.parse((await visitor.get(`/sites/${site}/incidents/${id}/curve.json`)).text);
  // Regular times: a line from the attack's first second to its last, without a break.
  const { stepMs } = curve;
  const count = Math.ceil(((attack.endMinute - attack.fromMinute) * 1000) / stepMs);
  assert.deepEqual(curve.times, { startMs: attack.fromMinute * 1000, stepMs, count });
  const rejected = await pool.query("select count(*)::int as n from inbox_uploads where state <> 'applied'");
  assert.equal(rejected.rows[0].n, 0);
});

test('every page of the simulated site says so, also under another name; pages of other sites do not', async () => {
  await using server = await startMonitorServer({ SVC_DEMO_WORLD: '1' });
  await seed(server, settingsOf([]));
  await seed(server, settingsOf([]));
  const simulated = (await server.monitor.sites.list()).filter((site) => site.isSimulated);
  assert.equal(simulated.length, 1, 'made once');
  const { id } = simulated[0]!;
  await server.monitor.sites.rename(systemActor, id, 'Frankfurt');
  const visitor = await server.signIn('operator');
  const label = /Its hypervisors do not exist, and its traffic and attacks are made up/;
  for (const { path } of sitePages) {
    const page = await visitor.get(`/sites/${id}/${path}`);
    assert.equal(page.status, 200, path);
    assert.match(page.text, label, path);
    assert.doesNotMatch((await visitor.get(`/sites/${server.siteId}/${path}`)).text, label, path);
  }
  const weekAgo = await visitor.get(`/sites/${id}/traffic?range=7d`);
  assert.doesNotMatch(weekAgo.text, /before the first sensor was enrolled|no sensor is enrolled/);
  const overview = (await visitor.get('/')).text;
  assert.equal(overview.split('>simulated</span>').length, 2, 'one site of the list is labelled');
});

test('SVC_DEMO_HISTORY=0 switches the simulated site off; without it the demo has one', async () => {
  assert.equal(readDemoSettings({}).hasHistory, true);
  assert.equal(readDemoSettings({ SVC_DEMO_HISTORY: '0' }).hasHistory, false);
  await using server = await startMonitorServer({ SVC_DEMO_WORLD: '1' });
  const { simulated_tokens } = await seed(server, {});
  assert.deepEqual(simulated_tokens, {});
  assert.ok((await server.monitor.sites.list()).every((site) => !site.isSimulated));
});
