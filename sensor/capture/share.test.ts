// Own process: it measures the memory of captures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCapture } from '#sensor/capture/index.ts';
import { offer, testCapture, testDomain, testMinute } from '#sensor/testing/captures.ts';
import { dnsMessage, ethernet, reverse, type SegmentOptions, Tcp, tcp, udp } from '#sensor/testing/frames.ts';
import { heldBytes } from '#sensor/testing/held-bytes.ts';

const asking: SegmentOptions = { from: '192.0.2.1', fromPort: 5353, to: '203.0.113.53', toPort: 53 };
const endMs = (testMinute + 60) * 1000;

async function memoryOf(make: () => unknown[]): Promise<number> {
  const before = await heldBytes();
  const made = make();
  const used = (await heldBytes()) - before;
  assert.ok(made.length > 0);
  return used;
}

test('NET-8.6: fanout members divide the limits of one capture, and name by DNS in any number', async () => {
  const whole = () =>
    createCapture({
      name: 'eth0',
      role: 'uplink',
      linkType: 1,
      registrableDomain: testDomain,
      local: { prefixes: ['192.0.2.0/24'], addresses: [] },
    });
  const one = await memoryOf(() => [whole()]);
  for (const members of [2, 3, 5, 8]) {
    const share = 1 / members;
    const parts = await memoryOf(() =>
      Array.from({ length: members }, () => testCapture({ share, flowsMax: Math.floor(32_768 * share) })),
    );
    assert.ok(parts <= one * 1.5, `${members} members take ${parts} bytes, one capture ${one}`);
    const capture = testCapture({ share });
    const clients = Array.from({ length: 200 }, (_, i) => ({
      from: `192.0.2.${i + 1}`,
      to: `198.51.100.${i + 1}`,
    }));
    for (const [i, { from, to }] of clients.entries()) {
      const name = `h${i}.example-${i}.com`;
      const ends = { ...asking, from };
      const answers = [{ name, address: to, ttl: 60 }];
      offer(capture, ethernet(udp(ends, dnsMessage({ id: i, name }))));
      offer(capture, ethernet(udp(reverse(ends), dnsMessage({ id: i, name, answers }))));
    }
    for (const ends of clients)
      offer(capture, ethernet(tcp({ ...ends, fromPort: 7000, toPort: 443 }, Tcp.syn, 1)));
    const [report] = capture.closeMinutes(endMs);
    const named = report!.usage.filter((row) => row.evidence === 'dns');
    assert.ok(named.length >= 190, `${named.length} of 200 names with ${members} members`);
  }
});
