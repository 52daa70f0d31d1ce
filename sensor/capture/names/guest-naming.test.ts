import assert from 'node:assert/strict';
import { test } from 'node:test';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import { ascii, dnsMessage, ethernet, reverse, type SegmentOptions, udp } from '#sensor/testing/frames.ts';
import type { CaptureOptions } from '../capture.ts';

const guest = '02:00:00:00:00:aa';
const neighbour = '02:00:00:00:00:bb';
const router = '02:00:00:00:00:fe';
const name = 'www.example.com';
const asked: SegmentOptions = { from: '192.0.2.10', fromPort: 5300, to: '198.51.100.53', toPort: 53 };
const opened: SegmentOptions = { from: '2001:db8::10', fromPort: 40_000, to: '2600::443', toPort: 443 };

interface Sent {
  ends: SegmentOptions;
  mac: string;
}

/** Looks up `address`: the question comes from `mac`, the answer from the router. */
function look(ends: SegmentOptions, mac: string, address: string): Uint8Array[] {
  const question = { id: 7, name, type: address.includes(':') ? 28 : 1 };
  const answers = [{ name, ttl: 300, address }];
  return [
    ethernet(udp(ends, dnsMessage(question)), { source: mac }),
    ethernet(udp(reverse(ends), dnsMessage({ ...question, answers })), { source: router }),
  ];
}

/** Name and evidence of the last flow. */
function nameOf(frames: readonly Uint8Array[], last: Sent, options: Partial<CaptureOptions> = {}): string {
  const capture = testCapture({ role: 'bridge', ...options });
  const flow = ethernet(udp(last.ends, ascii('quic')), { source: last.mac });
  for (const frame of [...frames, flow]) offer(capture, frame);
  const [report] = capture.closeMinutes((testMinute + 60) * 1000);
  const row = report!.usage.find((one) => one.server === last.ends.to && one.client === last.ends.from)!;
  return `${row.evidence} ${row.name}`;
}

const named = 'dns example.com';

test('NET-2.2.3: a guest’s lookup over IPv4 names its connections over IPv6, and the reverse', () => {
  const looked = look(asked, guest, opened.to);
  assert.equal(nameOf(looked, { ends: opened, mac: guest }), named);
  const overSix = { ...asked, from: '2001:db8::10', to: '2600::53' };
  const four = { ...opened, from: '192.0.2.10', to: '203.0.113.44' };
  assert.equal(nameOf(look(overSix, guest, four.to), { ends: four, mac: guest }), named);
});

test('NET-2.2.3: a guest’s lookup from its link-local address names its connections from another address', () => {
  const near = { ...asked, from: 'fe80::10', to: 'fe80::1' };
  assert.equal(nameOf(look(near, guest, opened.to), { ends: opened, mac: guest }), named);
});

test('NET-2.2.3: a lookup does not name connections of another guest', () => {
  const looked = look(asked, guest, opened.to);
  const other = { ...opened, from: '2001:db8::20' };
  assert.equal(nameOf(looked, { ends: other, mac: neighbour }), 'none 2600::443');
  const near = { ...asked, from: 'fe80::10', to: 'fe80::1' };
  assert.equal(nameOf(look(near, guest, opened.to), { ends: other, mac: neighbour }), 'none 2600::443');
});

test('NET-2.2.3: guests behind a router of their own share its MAC, and none gets another’s names', () => {
  const second = { ...asked, from: '192.0.2.11' };
  const frames = [...look(second, guest, '2600::1'), ...look(asked, guest, opened.to)];
  assert.equal(nameOf(frames, { ends: opened, mac: guest }), 'none 2600::443');
  const networks = { ...opened, from: '2001:db8:5::1', to: '2600::9' };
  const fromTwo = [
    ethernet(udp(networks, ascii('x')), { source: guest }),
    ethernet(udp(opened, ascii('x')), { source: guest }),
    ...look(asked, guest, '2600::77'),
  ];
  assert.equal(nameOf(fromTwo, { ends: { ...opened, to: '2600::77' }, mac: guest }), 'none 2600::77');
});

test('NET-2.2.3: clients behind the router do not name one another’s connections at a local resolver', () => {
  const stranger = { ...asked, from: '198.51.100.77', to: '192.0.2.53' };
  const frames = look(stranger, router, '2001:db8::80');
  const visit = { ...opened, from: '2600::99', to: '2001:db8::80' };
  assert.equal(nameOf(frames, { ends: visit, mac: router }), 'none 2600::99');
});

test('NET-2.2.3: a neighbour’s lookup under a guest’s MAC does not name that guest’s connections', () => {
  const known = ethernet(udp({ ...asked, toPort: 123 }, ascii('x')), { source: guest });
  const forged = look({ ...asked, from: '192.0.2.66' }, guest, opened.to);
  assert.equal(nameOf([known, ...forged], { ends: opened, mac: guest }), 'none 2600::443');
  assert.equal(nameOf([...forged, known], { ends: opened, mac: guest }), 'none 2600::443');
});

test('NET-2.2.3: an unsolicited answer to a guest’s MAC names nothing', () => {
  const own = { ...asked, from: '192.0.2.66' };
  const [question, answer] = look(own, neighbour, opened.to);
  // The frame is addressed to the guest, the packet to the neighbour that asked.
  answer!.set([2, 0, 0, 0, 0, 0xaa]);
  const known = ethernet(udp({ ...asked, toPort: 123 }, ascii('x')), { source: guest });
  assert.equal(nameOf([known, question!, answer!], { ends: opened, mac: guest }), 'none 2600::443');
});

test('on an uplink, where MACs belong to routers, a lookup names addresses of its own IP version only', () => {
  const looked = look(asked, guest, opened.to);
  assert.equal(nameOf(looked, { ends: opened, mac: guest }, { role: 'uplink' }), 'none 2600::443');
});
