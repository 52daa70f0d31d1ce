// Slow: waits for whole minutes of a demo.
/**
 * The demo without root: a simulated hypervisor reports the recording's guests, and a sensor replays the recording.
 * Owners see, minute for minute, the counters of nftables during the recording.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { TruthRow } from '#lab/index.ts';
import { apiOf, readMinutes, signIn } from './testing/people.ts';
import { shareDemo } from './testing/shared-demo.ts';

const truthFile = new URL('../demo/recording.truth.json', import.meta.url);
const recorded = JSON.parse(readFileSync(truthFile, 'utf8')) as TruthRow[];

const shared = shareDemo();

/** Deployed while the file is loaded: its minutes pass while other files of the process use the demo. */
const deploying = shared.start().then(async (demo) => {
  const body = { plan: 'kvm-1', image: 'debian-13', name: 'replayed' };
  return { demo, made: await apiOf(demo.file, demo.file.full_key).createServer(body) };
});
// The test shows a failure when its turn comes.
deploying.catch(() => {});

test('SVC_DEMO_HISTORY=0: the demo has no simulated site, and no process that loads one', async () => {
  const { demo } = await deploying;
  assert.deepEqual(await demo.query('monitor', 'select 1 from sites where is_simulated'), []);
  assert.equal(existsSync(join(demo.dataDir, 'logs', 'simulated-site.log')), false);
});

test('a server of the demo without root has the recorded traffic, exactly', async (t) => {
  t.after(() => shared.stop());
  const { demo, made } = await deploying;
  const customer = await signIn(demo.file.operations_url, demo.file.customer);
  const addresses = made.public_ips.map((ip) => ip.address);
  const shown = await demo.until('two whole minutes of each address are shown', 360_000, async () => {
    const whole = (await readMinutes(customer, made.id)).filter((row) => row.coverage === 1);
    return addresses.every((one) => whole.filter((row) => row.address === one).length >= 2) && whole;
  });
  for (const address of addresses) {
    const rounds = recorded.filter((row) => row.address === address);
    assert.ok(rounds.length >= 2, `${address} is not in the recording`);
    const rows = shown.filter((row) => row.address === address);
    const first = rounds.findIndex((row) => row.rx_bytes === rows[0]!.inbound_bytes);
    assert.ok(first >= 0, `${address} never had ${rows[0]!.inbound_bytes} bytes`);
    const startMs = Date.parse(rows[0]!.timestamp);
    for (const row of rows) {
      // The recording repeats.
      const step = (Date.parse(row.timestamp) - startMs) / 60_000;
      const round = rounds[(first + step) % rounds.length]!;
      assert.deepEqual([row.inbound_bytes, row.outbound_bytes], [round.rx_bytes, round.tx_bytes]);
    }
  }
});
