import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { readAll } from '#sensor/testing/captures.ts';
import { ascii, clientHello, ethernet, join, reverse, Tcp, tcp } from '#sensor/testing/frames.ts';

const ends = { from: '192.0.2.1', fromPort: 40_000, to: '203.0.113.9', toPort: 443 };
const start = 0xffffff00;

interface Cut {
  /** Start and length of a segment; segments may overlap. */
  from: number;
  length: number;
}

/** A handshake, then the data in these segments and in this order. */
function connection(data: Uint8Array, cuts: readonly Cut[]): Uint8Array[] {
  const frames = [tcp(ends, Tcp.syn, start - 1), tcp(reverse(ends), Tcp.syn | Tcp.ack, 77)];
  for (const cut of cuts) {
    const part = data.subarray(cut.from, cut.from + cut.length);
    if (part.length > 0) frames.push(tcp(ends, Tcp.push | Tcp.ack, (start + cut.from) >>> 0, part));
  }
  return frames.map((packet) => ethernet(packet));
}

/** Covers every byte, in any order; some segments are repeated or overlap. */
function cutting(length: number, pieceMin: number): fc.Arbitrary<Cut[]> {
  const piece = fc.integer({ min: pieceMin, max: Math.max(pieceMin, 700) });
  return fc
    .tuple(fc.array(piece, { minLength: 1, maxLength: 40 }), fc.array(fc.nat(300), { maxLength: 5 }))
    .chain(([pieces, overlaps]) => {
      const cuts: Cut[] = [];
      for (let at = 0, i = 0; at < length; i += 1) {
        const size = pieces[i % pieces.length]!;
        cuts.push({ from: at, length: size + (overlaps[i] ?? 0) });
        at += size;
      }
      return fc.shuffledSubarray(cuts, { minLength: cuts.length, maxLength: cuts.length });
    });
}

function namesOf(frames: readonly Uint8Array[]): (string | null)[] {
  return readAll(frames)
    .flows.filter((flow) => flow.evidence !== 'none')
    .map((flow) => flow.host);
}

test('NET-2.2.3: a hello gives the same name however it is cut into segments and records, in any order', () => {
  const input = fc
    .record({ before: fc.constantFrom(0, 300, 1300, 2400), recordBytes: fc.constantFrom(1, 7, 64, 16_384) })
    .map((one) => clientHello({ host: 'www.example.com', ...one }))
    // At most 4 KiB of a client's data is kept (NET-8.6).
    .filter((data) => data.length <= 4096)
    .chain((data) => {
      return fc.tuple(fc.constant(data), cutting(data.length, 20));
    });
  fc.assert(
    fc.property(input, ([data, cuts]) => {
      assert.deepEqual(namesOf(connection(data, cuts)), ['www.example.com']);
    }),
    { numRuns: 150, seed: 1 },
  );
});

test('NET-2.2.3: a hello larger than the buffer is named, at any distance of its name', () => {
  for (const before of [4000, 9000, 30_000]) {
    for (const recordBytes of [16_384, 300]) {
      for (const size of [1, 61, 536, 1380, 9000, 65_000]) {
        const data = clientHello({ host: 'www.example.com', before, recordBytes });
        if (size === 1 && before > 9000) continue;
        const cuts: Cut[] = [];
        for (let at = 0; at < data.length; at += size) cuts.push({ from: at, length: size });
        // Only neighbours are swapped: an early segment must fit into the buffer.
        if (size <= 1380)
          for (let i = 1; i + 1 < cuts.length; i += 2) [cuts[i], cuts[i + 1]] = [cuts[i + 1]!, cuts[i]!];
        assert.deepEqual(
          namesOf(connection(data, cuts)),
          ['www.example.com'],
          `${before} ${recordBytes} ${size}`,
        );
      }
    }
  }
});

test('NET-2.2.3: one byte per segment, first to last and last to first', () => {
  const data = clientHello({ host: 'www.example.com', before: 900 });
  const cuts = Array.from({ length: data.length }, (_, from) => ({ from, length: 1 }));
  assert.deepEqual(namesOf(connection(data, cuts)), ['www.example.com']);
  assert.deepEqual(namesOf(connection(data, cuts.reverse())), ['www.example.com']);
});

test('NET-2.2.3: a request gives the same host however it is cut, in any order', () => {
  const data = ascii(
    'POST /path HTTP/1.1\r\nAccept: */*\r\nHost: Shop.Example.COM:8080\r\nContent-Length: 4\r\n\r\nbody',
  );
  fc.assert(
    fc.property(cutting(data.length, 3), (cuts) => {
      assert.deepEqual(namesOf(connection(data, cuts)), ['shop.example.com']);
    }),
    { numRuns: 150, seed: 1 },
  );
});

test('NET-2.2.3: a request in many small segments, most of them early, gives its host when the rest arrives', () => {
  const data = ascii(
    'POST /path HTTP/1.1\r\nAccept: */*\r\nHost: Shop.Example.COM:8080\r\nContent-Length: 4\r\n\r\nbody',
  );
  const early = [33, 63, 15, 24, 66, 0, 75, 78, 6, 51, 39, 30, 54, 72, 21, 60, 45, 84, 18, 27, 9, 81];
  const late = [69, 57, 87, 36, 12, 42, 48];
  const small = (from: number): Cut => ({ from, length: 3 });
  const cuts = [...early.map(small), { from: 3, length: 84 }, ...late.map(small)];
  assert.deepEqual(namesOf(connection(data, cuts)), ['shop.example.com']);
});

test('NET-2.2.3: three hosts on one connection are three entries, for any segmentation', () => {
  const requests = ['a', 'b', 'c'].map((host) =>
    ascii(
      `POST / HTTP/1.1\r\nHost: ${host}.example.com\r\nContent-Length: 20\r\n\r\n${'GET / HTTP/1.1\r\n\r\n..'}`,
    ),
  );
  const data = join(...requests);
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 1 }), (sizes) => {
      const cuts: Cut[] = [];
      for (let at = 0, i = 0; at < data.length; i += 1) {
        cuts.push({ from: at, length: sizes[i % sizes.length]! });
        at += sizes[i % sizes.length]!;
      }
      assert.deepEqual(namesOf(connection(data, cuts)), ['a.example.com', 'b.example.com', 'c.example.com']);
    }),
    { numRuns: 100, seed: 1 },
  );
});

test('each of several hosts on one connection gets the bytes after its request, and the entries show the connection', () => {
  const requests = ['a.example.com', 'b.example.org'].map((host) =>
    ascii(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
  );
  const packets = [
    tcp(ends, Tcp.ack, 1, requests[0]),
    tcp(ends, Tcp.ack, 1 + requests[0]!.length, requests[1]),
  ];
  const { flows, applications } = readAll(packets.map((packet) => ethernet(packet)));
  const both = packets[0]!.length + packets[1]!.length;
  assert.deepEqual(
    applications.map((row) => [row.name, row.outboundBytes, row.packets]),
    [
      ['example.com', packets[0]!.length, 1],
      ['example.org', packets[1]!.length, 1],
    ],
  );
  assert.deepEqual(
    flows.map((flow) => [flow.host, flow.clientBytes, flow.clientPackets]),
    [
      ['a.example.com', both, 2],
      ['b.example.org', both, 2],
    ],
  );
});

test('NET-2.4.2: bytes and packets are the sums of the sent ones, for any segmentation', () => {
  const data = clientHello({ host: 'www.example.com', before: 1300 });
  fc.assert(
    fc.property(cutting(data.length, 20), (cuts) => {
      const frames = connection(data, cuts);
      const sent = frames.reduce((sum, frame) => sum + frame.length - 14, 0);
      const { conversations, flows, hosts, totals } = readAll(frames);
      const [pair] = conversations;
      assert.equal(pair!.bytesAToB + pair!.bytesBToA, sent);
      assert.equal(pair!.packetsAToB + pair!.packetsBToA, frames.length);
      assert.equal(flows[0]!.clientBytes + flows[0]!.serverBytes, sent);
      assert.equal(
        hosts.reduce((sum, host) => sum + host.rxBytes, 0),
        sent,
      );
      assert.equal(totals.ipBytes, sent);
    }),
    { numRuns: 50, seed: 1 },
  );
});

test('NET-8.6: 4,096 bytes of a client are kept for what comes before them, and not one more', () => {
  const withoutPadding = clientHello({ host: 'www.example.com', before: 1 }).length - 1;
  const namesAt = (length: number) => {
    const data = clientHello({ host: 'www.example.com', before: length - withoutPadding });
    assert.equal(data.length, length);
    // The last segment comes first.
    const cuts = Array.from({ length: Math.ceil(length / 64) }, (_, i) => ({ from: 64 * i, length: 64 }));
    return namesOf(connection(data, cuts.reverse()));
  };
  assert.deepEqual(namesAt(4096), ['www.example.com']);
  assert.deepEqual(namesAt(4097), []);
});
