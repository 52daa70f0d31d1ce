import assert from 'node:assert/strict';
import { test } from 'node:test';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import { countBlocks } from '#sensor/testing/count-blocks.ts';
import { fragmentKinds } from '#sensor/testing/fragment-flood.ts';
import { ethernet, ip, udp } from '#sensor/testing/frames.ts';

const flood = new URL('../../testing/fragment-flood.ts', import.meta.url);
const count = 600;
const timesAPacketMax = 2;

test('a fragment costs at most twice as much as a packet, in every kind of flood', async (t) => {
  const costs = new Map<string, number>();
  for (const kind of fragmentKinds) {
    const [, blocks] = await countBlocks(flood, 'offerFlood', { kind, count });
    costs.set(kind, blocks! / count);
  }
  const plain = costs.get('plain')!;
  for (const [kind, blocks] of costs) {
    const times = blocks / plain;
    t.diagnostic(
      `${kind}: ${blocks.toFixed(0)} blocks of code a packet, ${times.toFixed(2)} times a plain one`,
    );
    assert.ok(times <= timesAPacketMax, `${kind} costs ${times.toFixed(2)} times a packet`);
  }
});

test('every byte of a flood of fragments counts once, whichever fragment is missing', () => {
  const capture = testCapture();
  const payload = udp(
    { from: '203.0.113.1', fromPort: 53, to: '192.0.2.1', toPort: 5000 },
    new Uint8Array(4400),
  );
  let bytes = 0;
  let packets = 0;
  for (let id = 0; id < 200; id += 1) {
    for (let part = 0; part < 3; part += 1) {
      if ((id + part) % 4 === 0) continue;
      const offset = part * 1480;
      const packet = ip(payload.subarray(20 + offset, 20 + offset + 1480), {
        from: '203.0.113.1',
        to: '192.0.2.1',
        protocol: 17,
        id,
        offset,
        more: part < 2,
      });
      offer(capture, ethernet(packet));
      bytes += packet.length;
      packets += 1;
    }
  }
  const [report] = capture.closeMinutes((testMinute + 60) * 1000);
  const host = report!.hosts.find((one) => one.address === '192.0.2.1')!;
  assert.deepEqual([host.rxBytes, host.packets], [bytes, packets]);
  const rows = report!.usage.reduce((sum, row) => sum + row.packets, 0);
  assert.equal(rows + report!.totals.detailTruncated, packets);
});

test('a fragment inside a tunnel takes no bytes of a datagram outside with the same addresses and id', () => {
  const capture = testCapture();
  const ends = { from: '192.0.2.1', to: '203.0.113.9', protocol: 17, id: 7 };
  const later = ip(new Uint8Array(40), { ...ends, offset: 8 });
  const first = ip(new Uint8Array(24), { ...ends, more: true });
  offer(capture, ethernet(later));
  offer(capture, ethernet(ip(first, { from: '198.51.100.1', to: '198.51.100.2', protocol: 4 })));
  const [report] = capture.closeMinutes((testMinute + 60) * 1000);
  const host = report!.hosts.find((one) => one.address === '192.0.2.1')!;
  assert.deepEqual([host.txBytes, host.packets], [later.length, 1]);
});
