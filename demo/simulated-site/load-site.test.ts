// Slow: makes the telemetry of a site's history.
/** The loader against a monitor in memory that keeps what it was sent, as the real one does: by sensor, spool and number. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import { attackOfDay } from './attacks.ts';
import { historySeconds, loadSite } from './load-site.ts';
import type { MonitorCalls, Outcome } from './monitor-calls.ts';
import { planSite } from './plan.ts';
import type { Progress } from './progress.ts';
import type { SiteState } from './site-state.ts';

const start = Date.UTC(2026, 0, 8, 12, 34, 30);
const whole = planSite(7);
/** One of the two has an attack on the day before. */
const attacked = attackOfDay(whole.seed, start / 1000 - 86_400)!.hypervisor;
const plan = {
  ...whole,
  hypervisors: [attacked, (attacked + 1) % whole.hypervisors.length].map((at) => whole.hypervisors[at]!),
};
const tokens = Object.fromEntries(plan.hypervisors.map(({ node }) => [node, `token of ${node}`]));

/** Thrown where a loader is killed: nothing of it runs after that. */
class Killed extends Error {}

function createMonitor() {
  const stored = new Map<string, { body: string; upload: TelemetryUpload }>();
  const received: TelemetryUpload[] = [];
  const enrolled: string[] = [];
  return {
    received,
    enrolled,
    calls(killAt: { send?: number; isStored?: boolean } = {}): MonitorCalls {
      let sent = 0;
      return {
        async enrol(node, token) {
          assert.equal(token, tokens[node]);
          enrolled.push(node);
          return { credential: `credential of ${node}` };
        },
        rotateWhenDue: async () => null,
        async send(credential, _part, body): Promise<Outcome> {
          sent += 1;
          const isEnd = sent === killAt.send;
          if (isEnd && !killAt.isStored) throw new Killed();
          const upload = decodeUpload(decompressUpload(body, 'zstd'));
          const key = `${credential} ${upload.spoolId} ${upload.sequence}`;
          const text = Buffer.from(body).toString('base64');
          const known = stored.get(key);
          if (known) assert.equal(known.body, text, 'a number is used for one upload only');
          else {
            stored.set(key, { body: text, upload });
            received.push(upload);
          }
          if (isEnd) throw new Killed();
          return { kind: 'stored', isDuplicate: known !== undefined };
        },
      };
    },
    /** Every minute of an address with its bytes; fails when one comes twice. */
    minutes(): Map<string, number> {
      const found = new Map<string, number>();
      for (const { minutes } of received)
        for (const { minute, hosts } of minutes)
          for (const { address, rxBytes } of hosts) {
            const key = `${address} ${minute}`;
            assert.ok(!found.has(key), `${key} was loaded twice`);
            found.set(key, rxBytes);
          }
      return found;
    },
  };
}

interface Run {
  calls: MonitorCalls;
  state?: string | null;
  atMs?: number;
  told?: Progress[];
}

/** The state of a site whose history began two days ago, before anything was loaded. */
const ofTwoDays = JSON.stringify({
  seed: plan.seed,
  fromMinute: Math.floor(start / 60_000) * 60 - 2 * 86_400,
  sensors: {},
});

/** Loads up to now; the state as it is on disk when it ended, however that was. */
async function load({ calls, state = ofTwoDays, atMs = start, told = [] }: Run): Promise<string> {
  let disk = state;
  const ended = loadSite(
    {
      clock: createTestClock(atMs),
      reporter: silentReporter,
      calls,
      pace: { pause: async () => {} },
      plan,
      tokens,
      state: state === null ? null : (JSON.parse(state) as SiteState),
      write: (value) => {
        disk = JSON.stringify(value);
      },
      tell: (progress) => told.push(progress),
      signal: new AbortController().signal,
    },
    false,
  );
  await ended.catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error;
  });
  return disk!;
}

test('the newest hour of every sensor comes before any older one', async () => {
  const monitor = createMonitor();
  await load({ calls: monitor.calls({ send: 12 }) });
  const hours = monitor.received.map(
    ({ minutes, gaps }) => (minutes[0]?.minute ?? gaps[0]!.fromMinute) / 3_600,
  );
  assert.deepEqual(
    hours.map(Math.floor),
    hours.map(Math.floor).toSorted((a, b) => b - a),
  );
  assert.equal(new Set(monitor.received.slice(0, 2).map(({ spoolId }) => spoolId)).size, 2);
});

test('seven days are loaded whole, and progress ends with 100 %', async () => {
  const monitor = createMonitor();
  const told: Progress[] = [];
  await load({ calls: monitor.calls(), state: null, told });
  const minutes = monitor.received.flatMap((upload) => upload.minutes.map(({ minute }) => minute));
  const gaps = monitor.received.flatMap((upload) => upload.gaps);
  const gapMinutes = gaps.reduce(
    (sum, { fromMinute, toMinute }) => sum + (toMinute - fromMinute) / 60 + 1,
    0,
  );
  const from = Math.min(...minutes);
  assert.ok(from <= start / 1000 - historySeconds + 3_600);
  const end = Math.floor(start / 60_000) * 60;
  assert.equal(minutes.length + gapMinutes, (2 * (end - from)) / 60);
  assert.deepEqual(told.at(-1), { percent: 100, secondsLeft: 0 });
  assert.ok(told.slice(0, -1).every(({ percent }) => percent < 100));
});

for (const isStored of [false, true])
  test(`a loader killed ${isStored ? 'after an upload was stored and before its receipt came' : 'before an upload arrived'} begins again without loading anything twice`, async () => {
    const whole = createMonitor();
    await load({ calls: whole.calls() });
    const monitor = createMonitor();
    let state = ofTwoDays;
    // Killed at the first upload, and again and again later.
    for (const send of [1, 2, 5, 20, 7, 1, 1])
      state = await load({ calls: monitor.calls({ send, isStored }), state });
    await load({ calls: monitor.calls(), state });
    assert.deepEqual(monitor.minutes(), whole.minutes());
    assert.deepEqual(monitor.enrolled, Object.keys(tokens));
    const incidents = (of: typeof monitor) => of.received.flatMap((upload) => upload.incidents ?? []);
    assert.equal(new Set(incidents(monitor).map(({ id }) => id)).size, 1);
    assert.deepEqual(incidents(monitor), incidents(whole));
  });

test('minutes that passed while nothing ran are loaded at the next start, and only they', async () => {
  const monitor = createMonitor();
  const state = await load({ calls: monitor.calls() });
  const before = monitor.minutes().size;
  const minutes = 150;
  await load({ calls: monitor.calls(), state, atMs: start + minutes * 60_000 });
  const servers = plan.hypervisors.reduce((sum, one) => sum + one.servers.length, 0);
  const added = monitor.minutes().size - before;
  assert.ok(added > 0 && added <= minutes * servers);
  assert.equal(added, minutes * servers, 'no gap in this time');
});

test('a sensor whose credential or token is not taken is left out, and the others are loaded', async () => {
  const monitor = createMonitor();
  const [first, second] = plan.hypervisors.map(({ node }) => node) as [string, string];
  const calls = monitor.calls();
  const state = await load({
    calls: {
      ...calls,
      send: async (credential, ...rest) =>
        credential.endsWith(first) ? { kind: 'denied' } : calls.send(credential, ...rest),
    },
  });
  assert.deepEqual(Object.keys((JSON.parse(state) as SiteState).sensors), [second]);
  assert.ok(monitor.minutes().size > 0);
  const refused = { ...calls, enrol: async () => ({ credential: null, reason: 'used' }) as const };
  assert.deepEqual(Object.keys((JSON.parse(await load({ calls: refused })) as SiteState).sensors), []);
  const again = await load({ calls, state });
  assert.deepEqual(Object.keys((JSON.parse(again) as SiteState).sensors).sort(), [first, second].sort());
});
