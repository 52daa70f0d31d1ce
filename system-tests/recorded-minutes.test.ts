/** A recording of the lab and the counters of nftables beside it: the sensor and the monitor count the same bytes. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { recording, recordingCidrs } from '#demo/start-demo.ts';
import type { TruthRow } from '#lab/index.ts';
import { createMonitorWorld, createSpool, testMinute } from '#monitor/testing/index.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { openReplaySource } from '#sensor/packet-source/replay-source.ts';

const truth = JSON.parse(
  readFileSync(recording.capture.replace('.pcap', '.truth.json'), 'utf8'),
) as TruthRow[];
const firstMinute = Math.min(...truth.map(({ minute }) => minute));
const lastMinute = Math.max(...truth.map(({ minute }) => minute));

test('NET-8.B: of each minute and address the monitor has the bytes that nftables counted beside the sensor', async () => {
  let nowMs = testMinute * 1000;
  const endMs = nowMs + (lastMinute - firstMinute + 60) * 1000;
  const source = openReplaySource(recording.capture, () => nowMs);
  const capture = createCapture({
    ...{ name: 'eth0', role: 'uplink', linkType: source.linkType, registrableDomain: () => null },
    local: { prefixes: recordingCidrs, addresses: [] },
  });
  capture.listeningSince(nowMs);
  for (; nowMs <= endMs; nowMs += 30_000) source.poll(0, (...frame) => capture.observe(...frame));
  source.close();
  const minutes = capture.closeMinutes(endMs).map((report) => ({ ...report, role: 'uplink' as const }));

  await using world = await createMonitorWorld();
  await world.apply(createSpool().upload(minutes));
  for (const address of new Set(truth.map((row) => row.address))) {
    const known = await world.traffic.readAddressMinutes(world.siteId, address, testMinute, endMs / 1000);
    assert.deepEqual(
      known.map((one) => one.isGap || [one.minute - testMinute + firstMinute, one.rxBytes, one.txBytes]),
      truth
        .filter((row) => row.address === address)
        .map(({ minute, rx_bytes, tx_bytes }) => [minute, rx_bytes, tx_bytes])
        .sort(),
      address,
    );
  }
});
