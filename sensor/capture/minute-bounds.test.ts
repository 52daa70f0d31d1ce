// Slow: fills every table of a capture.
// Own process: it measures the memory of captures.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCapture, type MinuteReport } from '#sensor/capture/index.ts';
import { tableShare } from '#sensor/collection/index.ts';
import { offer, testCapture, testDomain, testMinute } from '#sensor/testing/captures.ts';
import {
  ascii,
  clientHello,
  dnsMessage,
  ethernet,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  udp,
} from '#sensor/testing/frames.ts';
import { heldBytes } from '#sensor/testing/held-bytes.ts';

const outbound: SegmentOptions = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const endMs = (testMinute + 60) * 1000;

function hostOf(report: MinuteReport, address: string) {
  return report.hosts.find((host) => host.address === address)!;
}

test('NET-8.6: when flows overflow, totals of local addresses stay exact and every byte is in a row', () => {
  const capture = testCapture({ flowsMax: 64 });
  let sent = 0;
  for (let i = 0; i < 500; i += 1) {
    const ends = { ...outbound, fromPort: 1024 + i };
    for (const packet of [udp(ends, ascii('a')), udp(reverse(ends), ascii('b')), udp(ends, ascii('c'))]) {
      offer(capture, ethernet(packet));
      sent += packet.length;
    }
  }
  const [report] = capture.closeMinutes(endMs);
  const host = hostOf(report!, '192.0.2.1');
  assert.equal(host.rxBytes + host.txBytes, sent);
  assert.equal(host.packets, 1500);
  const rows = report!.usage.reduce((sum, row) => sum + row.packets, 0);
  assert.deepEqual([rows, report!.totals.detailTruncated], [1500, 0]);
});

/** A connection from its opening to the hello with its name. */

function namedConnection(ends: SegmentOptions, host: string): Uint8Array[] {
  return [
    tcp(ends, Tcp.syn, 1),
    tcp(reverse(ends), Tcp.syn | Tcp.ack, 1),
    tcp(ends, Tcp.ack, 2, clientHello({ host })),
  ].map((packet) => ethernet(packet));
}

test('NET-8.6: finished exchanges free their entries, a named connection stays and new ones get names', () => {
  const capture = testCapture({ flowsMax: 256 });
  const old = { ...outbound, fromPort: 999 };
  for (const frame of namedConnection(old, 'www.old.example')) offer(capture, frame);
  for (let i = 0; i < 5000; i += 1) {
    const ends = { ...outbound, from: '192.0.2.2', fromPort: 1024 + i, to: '198.51.100.53', toPort: 53 };
    for (const packet of [udp(ends, ascii('question')), udp(reverse(ends), ascii('an answer'))])
      offer(capture, ethernet(packet));
    if (i % 500 !== 0) continue;
    const ends2 = { ...outbound, fromPort: 2000 + i };
    for (const frame of namedConnection(ends2, `www.new-${i}.example`)) offer(capture, frame);
  }
  offer(capture, ethernet(tcp(old, Tcp.ack, 900, ascii('still here'))));
  const [report] = capture.closeMinutes(endMs);
  const named = report!.usage.filter((row) => row.evidence === 'tls_sni');
  assert.equal(named.length, 11);
  assert.equal(named.find((row) => row.name === 'old.example')?.packets, 4);
  assert.equal(report!.usage.find((row) => row.serverPort === 53)?.packets, 10_000);
  assert.equal(report!.totals.detailTruncated, 0);
});

test('NET-8.6: under pressure the least recently used conversation makes room, named TCP connections last', () => {
  const capture = testCapture({ flowsMax: 256 });
  const named = Array.from({ length: 100 }, (_, i) => ({ ...outbound, fromPort: 100 + i }));
  for (const [i, ends] of named.entries())
    for (const frame of namedConnection(ends, `www.site-${i}.example`)) offer(capture, frame);
  for (let i = 0; i < 3000; i += 1) {
    const ends = { from: '203.0.113.50', fromPort: 5000 + i, to: '192.0.2.9', toPort: 27_015 };
    for (const packet of [udp(ends, ascii('a')), udp(reverse(ends), ascii('b')), udp(ends, ascii('c'))])
      offer(capture, ethernet(packet), 1 + i / 1000);
  }
  for (const ends of named) offer(capture, ethernet(tcp(ends, Tcp.ack, 900, ascii('still here'))), 30);
  const [report] = capture.closeMinutes(endMs);
  const rows = report!.usage.filter((row) => row.evidence === 'tls_sni');
  assert.deepEqual([rows.length, rows.every((row) => row.packets === 4)], [100, true]);
  const game = report!.usage.find((row) => row.serverPort === 27_015)!;
  assert.deepEqual([game.client, game.packets], ['203.0.113.50', 9000]);
});

test('NET-8.6: a resolver’s many names and servers leave room for names that clients speak', () => {
  const capture = testCapture({ flowsMax: 32_768 });
  const resolver = '192.0.2.53';
  for (let i = 0; i < 20_000; i += 1) {
    const server = `198.${18 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`;
    const ends = { from: resolver, fromPort: 1024 + (i % 60_000), to: server, toPort: 53 };
    const name = `h${i}.zone-${i}.example-${i}.com`;
    const answers = [{ name, ttl: 300, address: `203.1.${(i >> 8) & 255}.${i & 255}` }];
    offer(capture, ethernet(udp(ends, dnsMessage({ id: i & 0xffff, name }))));
    offer(capture, ethernet(udp(reverse(ends), dnsMessage({ id: i & 0xffff, name, answers }))));
    if (i % 1000 !== 999) continue;
    const connection = namedConnection({ ...outbound, fromPort: i }, `www.spoken-${i}.example`);
    for (const frame of connection) offer(capture, frame);
  }
  const [report] = capture.closeMinutes(endMs);
  const named = report!.usage.filter((row) => row.evidence === 'tls_sni').map((row) => row.name);
  assert.deepEqual(
    named.sort(),
    Array.from({ length: 20 }, (_, i) => `spoken-${i * 1000 + 999}.example`).sort(),
  );
  assert.equal(hostOf(report!, resolver).packets, 40_000);
});

test('NET-8.6: a minute has the 4,096 largest rows; packets without a row are counted, hosts stay exact', () => {
  const capture = testCapture({ flowsMax: 8192 });
  for (let i = 0; i < 6000; i += 1) {
    const ends = { ...outbound, to: `198.51.${100 + (i >> 8)}.${i & 255}`, toPort: 1000 };
    offer(capture, ethernet(udp(ends, ascii(i === 5999 ? 'a larger one' : 'a'))));
    offer(capture, ethernet(udp(reverse(ends), ascii('a'))));
  }
  const [report] = capture.closeMinutes(endMs);
  assert.equal(report!.usage.length, 4096);
  assert.equal(report!.usage[0]!.server, '198.51.123.111');
  assert.equal(report!.totals.detailTruncated, (6000 - 4096) * 2);
  assert.equal(hostOf(report!, '192.0.2.1').packets, 12_000);
});

test('NET-8.6: every packet of a minute is in a row or counted as truncated', () => {
  const capture = testCapture({ flowsMax: 20_000 });
  const count = 18_000;
  for (let i = 0; i < count; i += 1) {
    offer(capture, ethernet(udp({ ...outbound, to: `198.51.${i >> 8}.${i & 255}` }, ascii('a'))));
  }
  const [report] = capture.closeMinutes(endMs);
  const inRows = report!.usage.reduce((sum, row) => sum + row.packets, 0);
  assert.equal(inRows + report!.totals.detailTruncated, count);
  assert.equal(hostOf(report!, '192.0.2.1').packets, count);
});

test('a flood of connection attempts displaces neither flows nor rows of established connections', () => {
  const capture = testCapture({ flowsMax: 1024 });
  const named = clientHello({ host: 'www.example.com' });
  for (const frame of [
    tcp(outbound, Tcp.syn, 1),
    tcp(reverse(outbound), Tcp.syn | Tcp.ack, 1),
    tcp(outbound, Tcp.ack, 2, named),
  ]) {
    offer(capture, ethernet(frame));
  }
  for (let i = 0; i < 20_000; i += 1) {
    const flood = {
      from: `203.0.${i >> 8}.${i & 255}`,
      fromPort: 1024 + (i % 60_000),
      to: '192.0.2.1',
      toPort: 80,
    };
    offer(capture, ethernet(tcp(flood, Tcp.syn, i)));
  }
  const late = tcp(outbound, Tcp.ack, 2 + named.length, ascii('still here'));
  offer(capture, ethernet(late));
  const [report] = capture.closeMinutes(endMs);
  const row = report!.usage.find((one) => one.name === 'example.com')!;
  assert.equal(row.packets, 4);
  assert.equal(hostOf(report!, '192.0.2.1').packets, 20_004);
});

test('months of new names and flows stay within the tables, and an old flow keeps its name', () => {
  const capture = testCapture({ flowsMax: 256 });
  const old = { ...outbound, fromPort: 999 };
  const hello = clientHello({ host: 'www.lasting.example' });
  offer(capture, ethernet(tcp(old, Tcp.ack, 1, hello)), 0);
  let truncated = 0;
  const names = new Set<string | undefined>();
  for (let i = 0; i < 30_000; i += 1) {
    const ends = { ...outbound, fromPort: 1024 + (i % 60_000) };
    offer(capture, ethernet(tcp(ends, Tcp.ack, 1, clientHello({ host: `h${i}.example-${i}.com` }))), i);
    if (i % 60 !== 59) continue;
    offer(capture, ethernet(tcp(old, Tcp.ack, 1 + hello.length, ascii('still here'))), i);
    for (const report of capture.closeMinutes((testMinute + i) * 1000)) {
      truncated += report.totals.detailTruncated;
      names.add(report.usage.find((row) => row.packets === 1 && row.name === 'lasting.example')?.name);
      assert.ok(
        report.usage.every((row) => row.name === 'lasting.example' || row.name.startsWith('example-')),
      );
    }
  }
  assert.equal(truncated, 0);
  assert.ok(names.has('lasting.example'));
});

test('NET-8.6: a capture knows 32,768 flows; one more displaces another', () => {
  const local = { prefixes: ['192.0.2.0/24'], addresses: [] };
  const ofUplink = { name: 'eth0', role: 'uplink', linkType: 1 } as const;
  const capture = createCapture({ ...ofUplink, registrableDomain: testDomain, local });
  let minute = 0;
  const hello = clientHello({ host: 'www.example.com' });
  const [syn, answer, named, late] = [
    tcp(outbound, Tcp.syn, 1),
    tcp(reverse(outbound), Tcp.syn | Tcp.ack, 1),
    tcp(outbound, Tcp.ack, 2, hello),
    tcp(outbound, Tcp.ack, 2 + hello.length, ascii('still here')),
  ].map((packet) => ethernet(packet));
  const offerAs = (frame: Uint8Array, portAt: number, port: number) => {
    frame[portAt] = port >> 8;
    frame[portAt + 1] = port & 255;
    offer(capture, frame, 60 * minute + 1);
  };
  const [sourcePort, targetPort] = [34, 36];
  const connect = (port: number) => {
    offerAs(syn!, sourcePort, port);
    offerAs(answer!, targetPort, port);
    offerAs(named!, sourcePort, port);
  };
  const ports = Array.from({ length: 32_768 }, (_, i) => 2000 + i);
  for (const port of ports) connect(port);
  /** Packets of the minute's rows with and without a name, when each of the connections has sent another one. */
  const endMinute = () => {
    for (const port of ports) offerAs(late!, sourcePort, port);
    const [report] = capture.closeMinutes(endMs + minute * 60_000);
    minute += 1;
    return ['tls_sni', 'none'].map((evidence) =>
      report!.usage.reduce((sum, row) => sum + (row.evidence === evidence ? row.packets : 0), 0),
    );
  };
  assert.deepEqual(endMinute(), [4 * 32_768, 0]);
  connect(1999);
  assert.notEqual(endMinute()[1], 0, 'the packet of a displaced connection has no name');
});

test('NET-8.6: a process has the tables of four captures, 131,072 flows, however many it has', () => {
  for (const captures of [4, 5, 8, 16]) assert.equal(captures * tableShare(captures) * 32_768, 131_072);
});

test('NET-8.6: four full captures fit into 32 MiB', async () => {
  const before = await heldBytes();
  const capture = testCapture({ flowsMax: 32_768 });
  const frame = ethernet(
    tcp(outbound, Tcp.ack, 1, clientHello({ host: 'unfinished.example' }).subarray(0, 60)),
  );
  for (let i = 0; i < 40_000; i += 1) {
    // The server's address and the client's port.
    frame.set([i >> 8, i & 255, 40 + (i >> 10), i & 255], 32);
    offer(capture, frame);
    if (i % 8 !== 0) continue;
    const named = clientHello({ host: `h${i}.example-${i}.com` });
    offer(capture, ethernet(tcp({ ...outbound, fromPort: 1024 + i }, Tcp.ack, 1, named)));
  }
  const used = (await heldBytes()) - before;
  assert.equal(capture.closeMinutes(endMs)[0]!.usage.length, 4096);
  assert.ok(used <= 8 * 1024 * 1024, `${used} bytes`);
});
