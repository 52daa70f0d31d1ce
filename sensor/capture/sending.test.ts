import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UsageRow } from '#sensor/capture/index.ts';
import { offer, testCapture, testMinute } from '#sensor/testing/captures.ts';
import { ascii, ethernet, ip, reverse, type SegmentOptions, Tcp, tcp, udp } from '#sensor/testing/frames.ts';

const inbound: SegmentOptions = { from: '203.0.113.9', fromPort: 40_000, to: '192.0.2.1', toPort: 443 };
const endMs = (testMinute + 60) * 1000;

/** Usage rows of these packets. */
function rowsOf(packets: readonly Uint8Array[]): UsageRow[] {
  const capture = testCapture();
  for (const packet of packets) offer(capture, ethernet(packet));
  return capture.closeMinutes(endMs)[0]!.usage;
}

/** For each row: whether the local side sent. */
function senders(packets: readonly Uint8Array[]): boolean[] {
  return rowsOf(packets).map((row) =>
    row.direction === 'inbound' ? row.serverLastSentMs > 0 : row.clientLastSentMs > 0,
  );
}

/** Ports of the scan. */
const scanned = [21, 22, 23, 25, 53, 80, 110, 143, 443, 445, 3306, 3389, 5432, 8080];

/** An ICMP unreachable message about a datagram of the local address. */
function unreachable(about: Uint8Array, version: 4 | 6 = 4): Uint8Array {
  const header = version === 4 ? [3, 3, 0, 0, 0, 0, 0, 0] : [1, 4, 0, 0, 0, 0, 0, 0];
  const ends = version === 4 ? ['192.0.2.1', '203.0.113.9'] : ['2001:db8::1', '2600::9'];
  const payload = Uint8Array.from([...header, ...about.subarray(0, 28)]);
  return ip(payload, { from: ends[0]!, to: ends[1]!, protocol: version === 4 ? 1 : 58 });
}

test('NET-2.4.4: a scan of closed ports does not count as sending, by TCP and by UDP', () => {
  const packets = scanned.flatMap((toPort) => {
    const ends = { ...inbound, toPort };
    const probe = udp({ ...ends, fromPort: 50_000 }, new Uint8Array(0));
    const refused = tcp(reverse(ends), Tcp.reset | Tcp.ack, 0);
    return [tcp(ends, Tcp.syn, 1), refused, probe, unreachable(probe)];
  });
  const rows = rowsOf(packets);
  assert.ok(rows.length >= scanned.length);
  assert.ok(rows.some((row) => row.serverBytes > 0));
  assert.deepEqual([...new Set(senders(packets))], [false]);
});

test('NET-2.4.4: a closed port over IPv6 does not count as sending', () => {
  const ends = { ...inbound, from: '2600::9', to: '2001:db8::1' };
  const probe = udp(ends, ascii('x'));
  const refused = tcp(reverse(ends), Tcp.reset | Tcp.ack, 0);
  const packets = [tcp(ends, Tcp.syn, 1), refused, probe, unreachable(probe, 6)];
  assert.deepEqual([...new Set(senders(packets))], [false]);
});

test('NET-2.4.4: a scanned open port does not count as sending, for any kind of scan', () => {
  const answer = tcp(reverse(inbound), Tcp.syn | Tcp.ack, 5);
  const scans: Record<string, Uint8Array[]> = {
    'half open': [tcp(inbound, Tcp.syn, 1), answer, tcp(inbound, Tcp.reset, 2)],
    'answered again and again': [tcp(inbound, Tcp.syn, 1), answer, answer, answer],
    connect: [
      tcp(inbound, Tcp.syn, 1),
      answer,
      tcp(inbound, Tcp.ack, 2),
      tcp(inbound, Tcp.reset | Tcp.ack, 2),
    ],
    'connect and leave': [
      tcp(inbound, Tcp.syn, 1),
      answer,
      tcp(inbound, Tcp.ack, 2),
      tcp(inbound, Tcp.fin | Tcp.ack, 2),
      tcp(reverse(inbound), Tcp.fin | Tcp.ack, 6),
    ],
    'reset after data': [
      tcp(inbound, Tcp.syn, 1),
      answer,
      tcp(inbound, Tcp.ack | Tcp.push, 2, ascii('hello')),
      tcp(reverse(inbound), Tcp.reset, 6),
    ],
    'acknowledgement without a connection': [tcp(inbound, Tcp.ack, 1), tcp(reverse(inbound), Tcp.reset, 1)],
    'invalid flags': [tcp(inbound, 0x29, 1), tcp(reverse(inbound), Tcp.reset | Tcp.ack, 0)],
    'empty datagrams': [udp(inbound, new Uint8Array(0)), udp(reverse(inbound), new Uint8Array(0))],
  };
  for (const [kind, packets] of Object.entries(scans)) assert.deepEqual(senders(packets), [false], kind);
});

test('NET-2.4.4: a service has sent when it answers with data or on a connection that carries data', () => {
  const opening = [
    tcp(inbound, Tcp.syn, 1),
    tcp(reverse(inbound), Tcp.syn | Tcp.ack, 5),
    tcp(inbound, Tcp.ack, 2),
  ];
  const answers: Record<string, Uint8Array[]> = {
    'a banner': [...opening, tcp(reverse(inbound), Tcp.ack | Tcp.push, 6, ascii('220 ready'))],
    'an acknowledgement of data': [
      ...opening,
      tcp(inbound, Tcp.ack | Tcp.push, 2, ascii('upload')),
      tcp(reverse(inbound), Tcp.ack, 6),
    ],
    'a connection that was there before': [tcp(inbound, Tcp.ack, 900), tcp(reverse(inbound), Tcp.ack, 901)],
    'the end of an answer whose question went another way': [
      tcp(reverse(inbound), Tcp.fin | Tcp.ack, 6, ascii('the end')),
    ],
    'a datagram': [udp(inbound, ascii('question')), udp(reverse(inbound), ascii('answer'))],
    'a datagram in fragments': [
      udp(inbound, ascii('question')),
      ip(new Uint8Array(64), {
        from: inbound.to,
        to: inbound.from,
        protocol: 17,
        id: 7,
        offset: 64,
      }),
    ],
    'an echo': [
      ip(Uint8Array.from([8, 0, 0, 0, 0, 1, 0, 1]), { from: inbound.from, to: inbound.to, protocol: 1 }),
      ip(Uint8Array.from([0, 0, 0, 0, 0, 1, 0, 1]), { from: inbound.to, to: inbound.from, protocol: 1 }),
    ],
  };
  for (const [kind, packets] of Object.entries(answers)) assert.ok(senders(packets).includes(true), kind);
});

test('NET-2.4.4: a server that scans closed ports of others does not count as sending', () => {
  const packets = scanned.flatMap((toPort) => {
    const ends = { ...reverse(inbound), fromPort: 40_000, toPort };
    return [tcp(ends, Tcp.syn, 1), tcp(reverse(ends), Tcp.reset | Tcp.ack, 0), tcp(ends, Tcp.reset, 2)];
  });
  assert.deepEqual([...new Set(senders(packets))], [false]);
});
