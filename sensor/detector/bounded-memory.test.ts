// Own process: it measures the memory of its typed arrays.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dividedThresholds, observeFrame, startSecond } from '#sensor/testing/attack-traffic.ts';
import { ethernet, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { Detector, defaultThresholds } from './index.ts';

test('NET-1.1: a flood over a /16 takes bounded memory; what has no room is counted and still seen', () => {
  const before = process.memoryUsage().arrayBuffers;
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
  const grown = process.memoryUsage().arrayBuffers - before;
  const result = detector.finish();
  // Twice while a table grows, until the former one is collected.
  assert.ok(grown < 32 * 1024 * 1024, `${grown} bytes`);
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
