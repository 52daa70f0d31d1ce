import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UsageRow } from '#sensor/capture/index.ts';
import { offer, readAll, testCapture, testMinute } from '#sensor/testing/captures.ts';
import {
  ascii,
  clientHello,
  dnsMessage,
  ethernet,
  ip,
  join,
  reverse,
  type SegmentOptions,
  Tcp,
  tcp,
  u16,
  u32,
  udp,
} from '#sensor/testing/frames.ts';

const web: SegmentOptions = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const resolver: SegmentOptions = { from: '192.0.2.1', fromPort: 5353, to: '203.0.113.53', toPort: 53 };

/** Packets with this client data, after the handshake. */
function spoken(...parts: Uint8Array[]): Uint8Array[] {
  const frames = [ethernet(tcp(web, Tcp.syn, 999)), ethernet(tcp(reverse(web), Tcp.syn | Tcp.ack, 5))];
  let sequence = 1000;
  for (const part of parts) {
    frames.push(ethernet(tcp(web, Tcp.push | Tcp.ack, sequence, part)));
    sequence += part.length;
  }
  return frames;
}

function entries(frames: readonly Uint8Array[]): string[] {
  return readAll(frames).flows.map((flow) => `${flow.evidence} ${flow.host} ${flow.name}`);
}

const hello = clientHello({ host: 'www.example.com' });

test('NET-2.2.3: a name is reduced to its registrable domain, an address is not a name', () => {
  assert.deepEqual(entries(spoken(hello)), ['tls_sni www.example.com example.com']);
  assert.deepEqual(entries(spoken(clientHello({ host: '198.51.100.7' }))), [
    'tls_sni 198.51.100.7 203.0.113.9',
  ]);
  assert.deepEqual(entries(spoken(clientHello({ host: null }))), ['none null 203.0.113.9']);
  assert.deepEqual(entries(spoken(clientHello({ host: 'WWW.Example.COM.' }))), [
    'tls_sni www.example.com example.com',
  ]);
});

test('a server name with invalid bytes is ignored', () => {
  assert.deepEqual(entries(spoken(clientHello({ host: 'bad name' }))), ['none null 203.0.113.9']);
  assert.deepEqual(entries(spoken(clientHello({ host: 'a\u001b[2Jb.example.com' }))), [
    'none null 203.0.113.9',
  ]);
});

test('a public name (ECH) gives way to the looked-up one, and is used when there is none', () => {
  const outer = clientHello({ host: 'cloudflare-ech.com' });
  const query = dnsMessage({ id: 9, name: 'secret.example.com' });
  const answers = [{ name: 'secret.example.com', ttl: 60, address: web.to }];
  const answer = dnsMessage({ id: 9, name: 'secret.example.com', answers });
  const lookup = [ethernet(udp(resolver, query)), ethernet(udp(reverse(resolver), answer))];
  assert.deepEqual(entries(spoken(outer)), ['tls_outer cloudflare-ech.com cloudflare-ech.com']);
  assert.equal(entries([...lookup, ...spoken(outer)])[1], 'tls_outer cloudflare-ech.com example.com');
});

test('hellos are found after STARTTLS, SSLRequest, SOCKS and PROXY', () => {
  const preambles: Uint8Array[][] = [
    [ascii('EHLO me\r\n'), ascii('STARTTLS\r\n')],
    [ascii('a1 CAPABILITY\r\n'), ascii('a2 STARTTLS\r\n')],
    [ascii('AUTH TLS\r\n')],
    [join(u32(8), u32(80_877_103))],
    [join([0x20, 0, 0, 1, 0x85, 0xae], new Uint8Array(30))],
    [join([5, 1, 0]), join([5, 1, 0, 1, 1, 2, 3, 4], u16(443))],
    [join([5, 1, 2]), join([1, 1, 0x61, 1, 0x62]), join([5, 1, 0, 3, 3], ascii('a.b'), u16(443))],
    [join([4, 1], u16(443), [1, 2, 3, 4, 0x61, 0])],
    [ascii('PROXY TCP4 198.51.100.22 203.0.113.7 35646 443\r\n')],
    [join([13, 10, 13, 10, 0, 13, 10, 0x51, 0x55, 0x49, 0x54, 10, 0x21, 0x11], u16(12), new Uint8Array(12))],
    [ascii("<?xml version='1.0'?><stream:stream to='x'>"), ascii("<starttls xmlns='urn:tls'/>")],
    [join([3, 0], u16(11), new Uint8Array(7))],
  ];
  for (const preamble of preambles) {
    assert.deepEqual(entries(spoken(...preamble, hello)), ['tls_sni www.example.com example.com']);
  }
});

test('the request target overrides Host: absolute form and CONNECT', () => {
  const absolute = ascii('GET http://user@one.example.org:81/x HTTP/1.1\r\nHost: two.example.com\r\n\r\n');
  assert.deepEqual(entries(spoken(absolute)), ['http_host one.example.org example.org']);
  const connect = ascii('CONNECT mail.example.org:443 HTTP/1.1\r\nHost: other.example.com\r\n\r\n');
  assert.deepEqual(entries(spoken(connect, hello)), [
    'http_connect mail.example.org example.org',
    'tls_sni www.example.com example.com',
  ]);
});

test('NET-2.2.3: a request is named after blank lines, and a bare line feed is one', () => {
  const text = 'GET / HTTP/1.1\r\nHost: a.example.com\r\n\r\n';
  for (const before of ['\n', '\r\n', '\n\n', '\r\n\n', '\n\r\n'])
    for (const parts of [[before + text], [before, text]])
      assert.deepEqual(entries(spoken(...parts.map(ascii))), ['http_host a.example.com example.com']);
  assert.deepEqual(entries(spoken(join([10, 7], ascii(text)))), ['none null 203.0.113.9']);
});

test('text that is not a request names nothing, even with a Host line', () => {
  assert.deepEqual(entries(spoken(ascii('MAIL FROM:<a@b>\r\nHost: a.example.com\r\n\r\n'))), [
    'none null 203.0.113.9',
  ]);
  assert.deepEqual(entries(spoken(ascii('HTTP/1.1 200 OK\r\nHost: a.example.com\r\n\r\n'))), [
    'none null 203.0.113.9',
  ]);
});

test('chunked bodies are skipped and the next request is read', () => {
  const first = ascii('POST / HTTP/1.1\r\nHost: a.example.com\r\nTransfer-Encoding: chunked\r\n\r\n');
  const body = ascii('1b\r\nGET / HTTP/1.1\r\nHost: evil.\r\n0\r\nX: y\r\n\r\n');
  const second = ascii('GET / HTTP/1.1\r\nHost: b.example.com\r\n\r\n');
  assert.deepEqual(entries(spoken(join(first, body, second))), [
    'http_host a.example.com example.com',
    'http_host b.example.com example.com',
  ]);
});

test('a header of more than 4 KiB names its connection, and the next request is found', () => {
  const large = ascii(`GET / HTTP/1.1\r\nHost: a.example.com\r\nCookie: ${'c'.repeat(6000)}\r\n\r\n`);
  const next = ascii('GET / HTTP/1.1\r\nHost: b.example.com\r\n\r\n');
  const parts = [0, 1400, 2800, 4200, 5600].map((at) => large.subarray(at, at + 1400));
  assert.deepEqual(entries(spoken(...parts, next)), [
    'http_host a.example.com example.com',
    'http_host b.example.com example.com',
  ]);
});

test('the client is the sender of the hello, also when the capture began later', () => {
  const frames = [tcp(reverse(web), Tcp.ack, 7, ascii('\u0017\u0003\u0003')), tcp(web, Tcp.ack, 1000, hello)];
  const [flow] = readAll(frames.map((packet) => ethernet(packet))).flows;
  assert.deepEqual(flow!.client, { ip: '192.0.2.1', port: 40_000 });
  assert.equal(flow!.host, 'www.example.com');
});

test('a second connection between the same sockets is another entry with its own name', () => {
  const second = clientHello({ host: 'other.example.org' });
  const again = [tcp(web, Tcp.syn, 70_000), tcp(web, Tcp.ack, 70_001, second)].map((packet) =>
    ethernet(packet),
  );
  assert.deepEqual(entries([...spoken(hello), ...again]), [
    'tls_sni www.example.com example.com',
    'tls_sni other.example.org example.org',
  ]);
});

/** Rows of one minute in which a client looks a name up and opens a connection `after` seconds later. */
function rowsAfterLookup(options: {
  ttl: number;
  after: number;
  asked?: boolean;
  isTruncated?: boolean;
  client?: string;
  address?: string;
}): UsageRow[] {
  const capture = testCapture();
  const name = 'www.example.com';
  const answers = [
    { name, ttl: options.ttl, cname: 'edge.example.net' },
    { name: 'edge.example.net', ttl: options.ttl, address: options.address ?? web.to },
    { name: 'planted.example.net', ttl: 600, address: '203.0.113.66' },
  ];
  if (options.asked !== false) offer(capture, ethernet(udp(resolver, dnsMessage({ id: 7, name }))), 1);
  const answer = dnsMessage({ id: 7, name, answers });
  if (options.isTruncated) answer[2]! |= 2;
  offer(capture, ethernet(udp(reverse(resolver), answer)), 1);
  const from = options.client ?? web.from;
  offer(capture, ethernet(udp({ ...web, from }, ascii('quic'))), 1 + options.after);
  const closed = capture.closeAll((testMinute + 3600) * 1000);
  return closed.flatMap((report) => report.usage).filter((row) => row.serverPort === 443);
}

test('NET-2.2.3: QUIC is named by the DNS answer to its client’s question, with the asked name', () => {
  const [row] = rowsAfterLookup({ ttl: 60, after: 1 });
  assert.deepEqual([row!.name, row!.evidence], ['example.com', 'dns']);
});

test('NET-2.2.3: a truncated answer (TC) names nothing', () => {
  assert.equal(rowsAfterLookup({ ttl: 60, after: 1, isTruncated: true })[0]!.evidence, 'none');
});

test('NET-2.2.3: an answer is valid for its TTL, five seconds for TTL 0, at most a day', () => {
  assert.equal(rowsAfterLookup({ ttl: 10, after: 10 })[0]!.evidence, 'dns');
  assert.equal(rowsAfterLookup({ ttl: 10, after: 11 })[0]!.evidence, 'none');
  assert.equal(rowsAfterLookup({ ttl: 0, after: 5 })[0]!.evidence, 'dns');
  assert.equal(rowsAfterLookup({ ttl: 0, after: 6 })[0]!.evidence, 'none');
  assert.equal(rowsAfterLookup({ ttl: 2_000_000_000, after: 86_400 })[0]!.evidence, 'dns');
  assert.equal(rowsAfterLookup({ ttl: 2_000_000_000, after: 86_401 })[0]!.evidence, 'none');
});

test('another client’s answer, an unsolicited answer and a record outside the chain name nothing', () => {
  assert.equal(rowsAfterLookup({ ttl: 60, after: 1, client: '192.0.2.2' })[0]!.evidence, 'none');
  assert.equal(rowsAfterLookup({ ttl: 60, after: 1, asked: false })[0]!.evidence, 'none');
  assert.equal(rowsAfterLookup({ ttl: 60, after: 1, address: '203.0.113.8' })[0]!.evidence, 'none');
});

test('NET-2.2.4: protocol labels precede names; AH has one over IPv4 only', () => {
  const labels: [number, string][] = [
    [47, 'GRE'],
    [50, 'IPsec ESP'],
    [51, 'IPsec AH'],
    [4, 'IP-in-IP'],
    [41, 'IPv6-in-IP'],
    [2, 'IGMP'],
    [89, 'OSPF'],
    [132, 'SCTP'],
  ];
  for (const [protocol, label] of labels) {
    const capture = testCapture();
    offer(capture, ethernet(ip(new Uint8Array(24), { from: '192.0.2.1', to: '203.0.113.9', protocol })));
    const [row] = capture.closeAll((testMinute + 60) * 1000)[0]!.usage;
    assert.deepEqual([row!.name, row!.evidence], [label, 'ip_protocol']);
  }
  // Over IPv6, AH is an extension header, complete or truncated.
  for (const header of [join([59, 4, 0, 0], new Uint8Array(20)), new Uint8Array(4)]) {
    const ah = ip(header, { from: '2001:db8::1', to: '2001:db8:9::9', protocol: 51 });
    const capture = testCapture();
    offer(capture, ethernet(ah));
    assert.notEqual(capture.closeAll((testMinute + 60) * 1000)[0]!.usage[0]!.evidence, 'ip_protocol');
  }
});

test('names inside tunnels are listed with the inner addresses, bytes count outside', () => {
  const inner = tcp(web, Tcp.ack, 1000, hello);
  const outer = { from: '198.51.100.1', to: '198.51.100.2' };
  const gre = ip(join([0, 0, 8, 0], inner), { ...outer, protocol: 47 });
  const vxlan = udp({ ...outer, fromPort: 1, toPort: 4789 }, join([8, 0, 0, 0, 0, 0, 1, 0], ethernet(inner)));
  for (const [packet, tunnel] of [
    [gre, 'gre'],
    [vxlan, 'vxlan'],
  ] as const) {
    const { flows, conversations } = readAll([ethernet(packet)]);
    const named = flows.find((flow) => flow.host !== null)!;
    assert.deepEqual([named.tunnel, named.host, named.clientBytes], [tunnel, 'www.example.com', 0]);
    assert.deepEqual(
      conversations.map((pair) => [pair.a, pair.b, pair.bytesAToB]),
      [['198.51.100.1', '198.51.100.2', packet.length]],
    );
  }
});

test('NET-2.2.3: a public name (ECH) from a configurable list gives way to the name that the client looked up', () => {
  const question = dnsMessage({ id: 7, name: 'secret.example.org' });
  const answers = [{ name: 'secret.example.org', ttl: 60, address: web.to }];
  const answer = dnsMessage({ id: 7, name: 'secret.example.org', answers });
  const nameWith = (outerNames: string[], host: string) => {
    const capture = testCapture({ outerNames });
    offer(capture, ethernet(udp(resolver, question)), 1);
    offer(capture, ethernet(udp(reverse(resolver), answer)), 1);
    for (const packet of [tcp(web, Tcp.syn, 999), tcp(web, Tcp.ack, 1000, clientHello({ host }))])
      offer(capture, ethernet(packet), 2);
    const rows = capture.closeAll((testMinute + 60) * 1000)[0]!.usage;
    const row = rows.find((one) => one.serverPort === 443)!;
    return `${row.evidence} ${row.name}`;
  };
  assert.equal(nameWith(['outer.example'], 'outer.example'), 'dns example.org');
  assert.equal(nameWith(['outer.example'], 'www.example.com'), 'tls_sni example.com');
  assert.equal(nameWith([], 'outer.example'), 'tls_sni outer.example');
});

test('a server’s own lookups do not name its clients’ connections', () => {
  const capture = testCapture();
  const name = 'visitor.example.net';
  const asking = { from: '192.0.2.1', fromPort: 5353, to: '203.0.113.53', toPort: 53 };
  offer(capture, ethernet(udp(asking, dnsMessage({ id: 7, name }))), 1);
  const answers = [{ name, ttl: 60, address: '203.0.113.9' }];
  offer(capture, ethernet(udp(reverse(asking), dnsMessage({ id: 7, name, answers }))), 1);
  offer(
    capture,
    ethernet(tcp({ from: '203.0.113.9', fromPort: 50_000, to: '192.0.2.1', toPort: 443 }, Tcp.syn, 1)),
    2,
  );
  const rows = capture.closeAll((testMinute + 60) * 1000)[0]!.usage;
  assert.equal(rows.find((row) => row.serverPort === 443)!.evidence, 'none');
});

test('an address is valid no longer than the CNAME records that lead to it', () => {
  const serve = (after: number) => {
    const capture = testCapture();
    offer(capture, ethernet(udp(resolver, dnsMessage({ id: 7, name: 'www.example.com' }))), 1);
    const answers = [
      { name: 'www.example.com', ttl: 10, cname: 'edge.example.net' },
      { name: 'edge.example.net', ttl: 300, address: web.to },
    ];
    offer(
      capture,
      ethernet(udp(reverse(resolver), dnsMessage({ id: 7, name: 'www.example.com', answers }))),
      1,
    );
    offer(capture, ethernet(udp(web, ascii('quic'))), 1 + after);
    const rows = capture.closeAll((testMinute + 60) * 1000)[0]!.usage;
    return rows.find((row) => row.serverPort === 443)!.evidence;
  };
  assert.deepEqual([serve(10), serve(11)], ['dns', 'none']);
});

test('a live capture names flows inside a tunnel without bytes, and counts the bytes outside', () => {
  const inner = tcp(web, Tcp.ack, 1000, hello);
  const ends = { from: '198.51.100.1', fromPort: 50_000, to: '198.51.100.2', toPort: 4789 };
  const outer = udp(ends, join([8, 0, 0, 0, 0, 0, 1, 0], ethernet(inner)));
  const foreign = tcp({ ...web, from: '198.18.0.1' }, Tcp.ack, 1000, hello);
  const other = udp(ends, join([8, 0, 0, 0, 0, 0, 1, 0], ethernet(foreign)));
  const capture = testCapture();
  offer(capture, ethernet(outer), 2);
  offer(capture, ethernet(other), 2);
  const reports = capture.closeMinutes((testMinute + 120) * 1000);
  const rows = reports[0]!.usage.map((row) => [row.client, row.name, row.packets, row.clientBytes]);
  assert.deepEqual(rows.sort(), [
    ['192.0.2.1', 'example.com', 0, 0],
    ['198.51.100.1', '198.51.100.2', 2, outer.length + other.length],
  ]);
  assert.equal(reports[0]!.usage.find((row) => row.packets === 0)!.clientLastSentMs, (testMinute + 2) * 1000);
  assert.equal(reports[0]!.totals.ipBytes, outer.length + other.length);
  assert.deepEqual(reports[1]!.usage, []);
});

test('a fragmented DNS answer, last fragment first, gives the same names as an unfragmented one', () => {
  const name = 'www.example.com';
  const answers = [{ name, ttl: 60, address: '203.0.113.9' }];
  const whole = udp(reverse(resolver), dnsMessage({ id: 7, name, answers }));
  const payload = whole.subarray(20);
  const ends = { from: resolver.to, to: resolver.from, protocol: 17, id: 99 };
  const pieces = [0, 24, 48, 72].map((offset) =>
    ip(payload.subarray(offset, offset + 24), { ...ends, offset, more: offset + 24 < payload.length }),
  );
  const frames = [udp(resolver, dnsMessage({ id: 7, name })), ...pieces.reverse()].map((packet) =>
    ethernet(packet),
  );
  const { answers: listed, flows } = readAll(frames);
  assert.deepEqual(
    listed.map((one) => [one.name, one.querySeen, one.addresses]),
    [[name, true, [{ address: '203.0.113.9', ttl: 60 }]]],
  );
  assert.equal(flows.length, 1);
  assert.equal(flows[0]!.serverPackets, 4);
});

test('NET-2.2.1: the server of a connection that began before the capture is found by its port, in files and live', () => {
  const server = '203.0.113.9';
  const client = '192.0.2.1';
  const cases: [string, SegmentOptions, (ends: SegmentOptions) => Uint8Array][] = [
    ['https', { from: server, fromPort: 443, to: client, toPort: 50_000 }, data],
    ['a database', { from: server, fromPort: 5432, to: client, toPort: 40_000 }, data],
    ['a reserved client port', { from: server, fromPort: 2049, to: client, toPort: 800 }, data],
    ['ports without a service', { from: server, fromPort: 20_022, to: client, toPort: 51_000 }, data],
    ['an answer to an opening', { from: server, fromPort: 60_000, to: client, toPort: 443 }, answer],
    ['time', { from: server, fromPort: 123, to: client, toPort: 40_000 }, datagram],
    ['a game', { from: server, fromPort: 27_015, to: client, toPort: 40_000 }, datagram],
  ];
  for (const [what, ends, build] of cases) {
    const frames = [ethernet(build(ends)), ethernet(build(reverse(ends)))];
    for (const shown of [frames.slice(0, 1), frames]) {
      const [flow] = readAll(shown).flows;
      assert.deepEqual([flow!.client.ip, flow!.server.port], [client, ends.fromPort], what);
      const capture = testCapture();
      for (const frame of shown) offer(capture, frame);
      const [row] = capture.closeMinutes((testMinute + 60) * 1000)[0]!.usage;
      assert.deepEqual([row!.client, row!.serverPort], [client, ends.fromPort], what);
    }
  }
});

test('when ports do not decide, the client is the side that sends first, in files and live', () => {
  const ends: SegmentOptions = { from: '203.0.113.9', fromPort: 123, to: '192.0.2.1', toPort: 123 };
  for (const change of [{}, { fromPort: 20_000, toPort: 50_000 }]) {
    const frame = ethernet(datagram({ ...ends, ...change }));
    assert.equal(readAll([frame]).flows[0]!.client.ip, ends.from);
    const capture = testCapture();
    offer(capture, frame);
    assert.equal(capture.closeMinutes((testMinute + 60) * 1000)[0]!.usage[0]!.client, ends.from);
  }
});

function data(ends: SegmentOptions): Uint8Array {
  return tcp(ends, Tcp.ack | Tcp.push, 900, ascii('in the middle'));
}

function answer(ends: SegmentOptions): Uint8Array {
  return tcp(ends, ends.fromPort === 60_000 ? Tcp.syn | Tcp.ack : Tcp.ack, 900);
}

function datagram(ends: SegmentOptions): Uint8Array {
  return udp(ends, ascii('some bytes'));
}
