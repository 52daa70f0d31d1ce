// Slow: floods whole networks, and measures memory.
// Own process: it measures the memory of its typed arrays.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LiveCounters } from '#sensor/attack-counters/index.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { dividedThresholds, observeFrame, startSecond } from '#sensor/testing/attack-traffic.ts';
import { ethernet, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { heldBytes } from '#sensor/testing/held-bytes.ts';
import { createThresholdBook, Detector, defaultThresholds, LiveDetector } from './index.ts';

test('NET-1.1: a flood over a /16 takes bounded memory; what has no room is counted and still seen', async () => {
  const before = await heldBytes();
  const wide = { prefixes: ['10.0.0.0/8'], addresses: [] };
  const detector = new Detector({ scope: wide, thresholds: dividedThresholds(400) });
  const frame = ethernet(
    udp({ from: '198.51.100.1', fromPort: 7, to: '10.1.0.0', toPort: 80 }, new Uint8Array(12)),
  );
  const perSecond = 100_000;
  for (let i = 0; i < perSecond * 3; i += 1) {
    const host = Math.imul(i, 40_503) & 0xffff;
    frame[32] = host >>> 8;
    frame[33] = host;
    frame[29] = i;
    observeFrame(detector, frame, startSecond + i / perSecond);
  }
  const grown = (await heldBytes()) - before;
  const result = detector.finish();
  assert.ok(grown < 20 * 1024 * 1024, `${grown} bytes`);
  assert.ok(result.hosts <= 4096);
  assert.ok(result.overflowed > 0);
  assert.equal(result.complete, false);
  const prefixes = result.incidents.filter(({ target }) => target.kind === 'prefix');
  assert.equal(prefixes.length, 256);
});

test('NET-3.2: a flood that fills the memory of flows goes on looking one-way, and recovers only after its end', () => {
  for (const scope of [{ prefixes: ['192.0.2.0/24'], addresses: [] }, null]) {
    const detector = new Detector({ scope, thresholds: defaultThresholds });
    const ends = { from: '11.0.0.1', fromPort: 1000, to: '192.0.2.7', toPort: 443 };
    const frame = ethernet(tcp(ends, Tcp.ack, 1));
    const perSecond = defaultThresholds.inbound.pps * 1.5;
    const seconds = 28;
    for (let i = 0; i < perSecond * seconds; i += 1) {
      frame[27] = i >>> 16;
      frame[28] = i >>> 8;
      frame[29] = i;
      frame[34] = 4 + (i % 200);
      observeFrame(detector, frame, startSecond + i / perSecond);
    }
    const [attack] = detector.finish().incidents;
    assert.deepEqual([attack!.class, attack!.severity, attack!.state], ['ack_flood', 'attack', 'active']);
    assert.equal(attack!.lastObservedAt, (startSecond + seconds) * 1000);
    assert.ok(attack!.current!.pps > perSecond * 0.85, `${attack!.current!.pps} packets of ${perSecond}`);
  }
});

test('NET-1.1: counters of 4,096 busy addresses take at most 16 MiB, those of the thread and of the main thread together', async () => {
  const addresses = Array.from({ length: 4096 }, (_, i) => `10.77.${i >> 8}.${i & 255}`);
  const scope = { prefixes: [], addresses };
  const book = createThresholdBook(defaultThresholds);
  const limits = book.sets.map(({ hostLimits }) => hostLimits);
  const capture = createCapture({
    ...{ name: 'test0', role: 'uplink', linkType: 1, local: scope },
    registrableDomain: (host) => host,
  });
  const before = await heldBytes();
  const counters = new LiveCounters({ number: 1, scope, groups: [], limits });
  capture.setTap(counters);
  const detector = new LiveDetector(
    {
      ...{ number: 1, epochId: 'e', scope, book, groups: [], drills: [] },
      isProtected: () => true,
    },
    'test0',
  );
  const request = ethernet(
    udp({ from: '198.51.100.9', fromPort: 7, to: '10.77.0.0', toPort: 80 }, new Uint8Array(9)),
  );
  const answer = ethernet(
    tcp({ from: '10.77.0.0', fromPort: 443, to: '198.51.100.9', toPort: 9 }, Tcp.ack, 1),
  );
  // Into a second minute, while the first one is not taken yet.
  for (let second = 0; second < 62; second += 1) {
    capture.turnTap((startSecond + second) * 1000);
    for (const one of counters.takeSeconds()) detector.take(one, 1, (one.second + 1) * 1000);
    for (let host = 0; host < 4096; host += 1) {
      for (const [frame, at] of [
        [request, 32],
        [answer, 28],
      ] as const) {
        frame[at] = host >>> 8;
        frame[at + 1] = host;
        capture.observe(frame, 0, frame.length, frame.length, startSecond + second, 0, -1, 1);
      }
    }
  }
  const grown = (await heldBytes()) - before;
  assert.ok(grown < 16 * 1024 * 1024, `${grown} bytes`);
  // After the measurement, so that the counters were not collected before it.
  assert.equal(counters.hosts.count, 4096);
  const { rows } = detector.takeMinute(Math.floor(startSecond / 60) * 60);
  assert.equal(rows.length, 8192);
  assert.deepEqual([...rows[1]!.oneSecond.slice(0, 2)], [1, 40 * 8]);
});
