import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { formatAddress } from '#common/ip/index.ts';
import { gapReasons } from '../minute-reasons.ts';
import { runAtOnce } from './decode-slices.ts';
import { uploadBytesMax } from './http.ts';
import { decodeLive, encodeLive, type LiveUpload } from './live-codec.ts';
import { createSetAside } from './set-aside.ts';
import { TelemetryUploadSchema } from './telemetry_pb.js';
import {
  compressUpload,
  decodeUpload,
  decodeUploadSliced,
  decompressUpload,
  encodeUpload,
  type TelemetryMinute,
  type TelemetryUpload,
  type TelemetryUsageRow,
  usageRowsMax,
} from './telemetry-codec.ts';

const minute = 1_764_000_000 - (1_764_000_000 % 60);
const spoolId = '0193a1f0-0000-7000-8000-000000000001';

const row: TelemetryUsageRow = {
  client: '192.0.2.10',
  server: '2001:db8::5',
  protocol: 6,
  serverPort: 443,
  direction: 'outbound',
  name: 'example.com',
  evidence: 'tls_sni',
  clientBytes: 1200,
  serverBytes: 53_000,
  packets: 61,
  clientLastSentMs: minute * 1000,
  serverLastSentMs: minute * 1000 + 59_999,
};

const wholeMinute: TelemetryMinute = {
  minute,
  capture: 'eth0',
  role: 'uplink',
  observedMs: 60_000,
  totals: {
    packets: 70,
    ipPackets: 61,
    ipBytes: 54_200,
    nonIpPackets: 8,
    parserDropped: 1,
    kernelDropped: 3,
    detailTruncated: 2,
  },
  hosts: [
    {
      address: '192.0.2.10',
      isLocal: true,
      rxBytes: 53_000,
      txBytes: 1200,
      packets: 61,
      ownScan: { rxBytes: 6_000, txBytes: 400, packets: 20 },
      deviceKey: 'eth0|52:54:00:00:00:01',
    },
  ],
  usage: [row, { ...row, protocol: 47, serverPort: null, evidence: 'ip_protocol', clientLastSentMs: 0 }],
};

const spoofed = [
  { deviceKey: 'br0.7|52:54:00:00:00:01', address: '2001:db8::2', bytes: 2 ** 40, packets: 7 },
  { deviceKey: 'br0|52:54:00:00:00:02', address: '192.0.2.9', reason: 'arp' as const, bytes: 0, packets: 2 },
  { deviceKey: 'br0|52:54:00:00:00:02', address: '', reason: 'router' as const, bytes: 64, packets: 1 },
  { deviceKey: '', address: '', bytes: 1500, packets: 1 },
];

const upload: TelemetryUpload = {
  spoolId,
  sequence: 812,
  sensorVersion: '0.1.0',
  minutes: [wholeMinute, { ...wholeMinute, capture: 'br0', role: 'bridge', usage: [], hosts: [], spoofed }],
  gaps: [{ fromMinute: minute - 600, toMinute: minute - 60, capture: '', reason: 'sensor_down' }],
  inventory: {
    observedAtMs: minute * 1000 + 5,
    interfaces: [
      {
        name: 'br0.77',
        index: 5,
        mac: '52:54:00:00:00:01',
        kind: 'vlan',
        isUp: true,
        mtu: 1500,
        master: '',
        parent: 'br0',
        vlan: 77,
        addresses: ['192.0.2.1/24', '2001:db8::1/64'],
      },
    ],
    neighbours: [{ segment: 'br0.77', mac: '52:54:00:00:00:02', address: '', isRouter: true }],
    interfacesLeftOut: 0,
    neighboursLeftOut: 3,
  },
  probes: [
    {
      probe: 7,
      minute,
      firstSentMs: 5_010,
      sent: 6,
      lost: 1,
      rtt: { minUs: 1, medianUs: 1_900, maxUs: 60_000_000 },
      failure: 'timeout',
    },
    { probe: 8, minute: minute - 60, firstSentMs: 0, sent: 1, lost: 1, rtt: null, failure: null },
  ],
};

test('an upload comes back from the wire as it was sent, compressed or not', () => {
  const bytes = encodeUpload(upload);
  assert.deepEqual(decodeUpload(bytes), upload);
  assert.deepEqual(decodeUpload(decompressUpload(compressUpload(bytes), 'zstd')), upload);
  assert.deepEqual(decodeUpload(decompressUpload(gzipSync(bytes), 'GZIP')), upload);
  assert.deepEqual(decodeUpload(decompressUpload(bytes, undefined)), upload);
});

test('every upload a sensor can make comes back as it was sent', () => {
  const count = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
  const address = fc
    .oneof(fc.uint8Array({ minLength: 4, maxLength: 4 }), fc.uint8Array({ minLength: 16, maxLength: 16 }))
    .map(formatAddress);
  const text = fc.string({ unit: 'grapheme-ascii', maxLength: 200 });
  const sent = fc.oneof(
    fc.constant(0),
    fc.integer({ min: 0, max: 59_999 }).map((ms) => minute * 1000 + ms),
  );
  const usageRow = fc.record<TelemetryUsageRow>({
    client: address,
    server: address,
    protocol: fc.integer({ min: 0, max: 255 }),
    serverPort: fc.option(fc.integer({ min: 0, max: 65_535 })),
    direction: fc.constantFrom('outbound', 'inbound', 'internal', 'transit'),
    name: text,
    evidence: fc.constantFrom(
      'ip_protocol',
      'tls_sni',
      'http_host',
      'http_connect',
      'tls_outer',
      'dns',
      'none',
    ),
    clientBytes: count,
    serverBytes: count,
    packets: count,
    clientLastSentMs: sent,
    serverLastSentMs: sent,
  });
  const small = fc.integer({ min: 0, max: 1e12 });
  const totals = fc
    .record({
      ipPackets: small,
      ipBytes: count,
      nonIpPackets: small,
      parserDropped: small,
      kernelDropped: count,
      detailTruncated: count,
    })
    .map((t) => ({ ...t, packets: t.ipPackets + t.nonIpPackets + t.parserDropped }));
  const host = fc.record({
    address,
    isLocal: fc.constant(true),
    rxBytes: count,
    txBytes: count,
    packets: count,
    deviceKey: text,
  });
  const captureMinute = fc.record<TelemetryMinute>({
    minute: fc.constant(minute),
    capture: fc.stringMatching(/^[a-z0-9.]{1,15}$/),
    role: fc.constantFrom('uplink', 'bridge'),
    observedMs: fc.integer({ min: 0, max: 60_000 }),
    totals,
    hosts: fc.uniqueArray(host, { selector: (one) => one.address, maxLength: 20 }),
    usage: fc.array(usageRow, { maxLength: 20 }),
  });
  const anyUpload = fc.record<TelemetryUpload>({
    spoolId: fc.uuid(),
    sequence: fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }),
    sensorVersion: fc.constant('0.1.0'),
    minutes: fc.uniqueArray(captureMinute, { selector: (one) => one.capture, maxLength: 4 }),
    gaps: fc.array(
      fc.record({
        fromMinute: fc.constant(minute - 120),
        toMinute: fc.constant(minute),
        capture: fc.constantFrom('', 'eth0'),
        reason: fc.constantFrom(...gapReasons),
      }),
      { maxLength: 4 },
    ),
  });
  fc.assert(
    fc.property(anyUpload, (sentUpload) => {
      // Generated records have no prototype; a clone is plain data.
      assert.deepEqual(decodeUpload(encodeUpload(sentUpload)), structuredClone(sentUpload));
    }),
    { numRuns: 150, seed: 1 },
  );
});

test('remote addresses stay out of the host counters', () => {
  const hosts = [...wholeMinute.hosts, { ...wholeMinute.hosts[0]!, address: '198.51.100.7', isLocal: false }];
  const decoded = decodeUpload(encodeUpload({ ...upload, minutes: [{ ...wholeMinute, hosts }] }));
  assert.deepEqual(decoded.minutes[0]!.hosts, wholeMinute.hosts);
});

test('a hostile name can not get a minute refused: it arrives without what a database could not store', () => {
  const usage = [
    { ...row, name: `a\0b\n\u0085${'x'.repeat(300)}` },
    { ...row, name: 'half \ud800 pair' },
  ];
  const decoded = decodeUpload(encodeUpload({ ...upload, minutes: [{ ...wholeMinute, usage }] }));
  const names = decoded.minutes[0]!.usage.map((one) => one.name);
  assert.equal(names[0], `a\ufffdb\ufffd\ufffd${'x'.repeat(250)}`);
  assert.equal(names[1], 'half \ufffd pair');
});

test('what no sensor of this contract sends is refused with a sentence', () => {
  const [first] = upload.minutes as [TelemetryMinute];
  const withMinute = (change: Partial<TelemetryMinute>) =>
    encodeUpload({ ...upload, minutes: [{ ...first, ...change }] });
  const withGap = (change: object) =>
    encodeUpload({ ...upload, gaps: [{ ...upload.gaps[0]!, ...change }] as TelemetryUpload['gaps'] });
  const refusals: [string, Uint8Array][] = [
    ['no telemetry upload', Uint8Array.of(0x0a, 0xff)],
    [
      'contract_version',
      toBinary(TelemetryUploadSchema, create(TelemetryUploadSchema, { contractVersion: 2 })),
    ],
    ['spool_id', encodeUpload({ ...upload, spoolId: 'x' })],
    ['sequence', encodeUpload({ ...upload, sequence: 0 })],
    ['occurs twice', encodeUpload({ ...upload, minutes: [first, first] })],
    ['UTC minute', withMinute({ minute: minute + 1 })],
    ['capture of a minute is blank', withMinute({ capture: '' })],
    ['observed_ms', withMinute({ observedMs: 60_001 })],
    ['totals.packets', withMinute({ totals: { ...first.totals, packets: 1 } })],
    ['canonical', withMinute({ hosts: [{ ...first.hosts[0]!, address: '192.0.2.010' }] })],
    ['address occurs twice', withMinute({ hosts: [first.hosts[0]!, first.hosts[0]!] })],
    ['address of usage', withMinute({ usage: [{ ...row, client: '2001:DB8::1' }] })],
    ['port of usage', withMinute({ usage: [{ ...row, serverPort: 70_000 }] })],
    ['NET-8.6', withMinute({ usage: new Array(usageRowsMax + 1).fill(row) })],
    ['spoofed.address', withMinute({ spoofed: [{ ...spoofed[0]!, address: '2001:DB8::2' }] })],
    ['spoofed holds more than 64', withMinute({ spoofed: new Array(65).fill(spoofed[0]!) })],
    ['gap ends', withGap({ fromMinute: minute, toMinute: minute - 60 })],
    ['gap reason', withGap({ reason: 'holiday' })],
  ];
  for (const [about, bytes] of refusals) {
    const expected = about === 'NET-8.6' ? 'usage holds more than 4096 entries' : about;
    assert.throws(
      () => decodeUpload(bytes),
      (error: Error & { code?: string }) =>
        error.code === 'telemetry.malformed' && error.message.includes(expected),
      about,
    );
  }
});

test('NET-2.4.4: what an older sensor calls sent is believed only where it can’t be a refusal', () => {
  const rowOf = (part: Partial<TelemetryUsageRow>) => ({
    ...row,
    clientLastSentMs: minute * 1000 + 5,
    serverLastSentMs: minute * 1000 + 9,
    ...part,
  });
  const refused = rowOf({ direction: 'inbound', clientBytes: 60, serverBytes: 40, packets: 2 });
  const unreachable = rowOf({ protocol: 1, serverPort: null, clientBytes: 56, serverBytes: 0, packets: 1 });
  const used = rowOf({ direction: 'inbound', clientBytes: 700, serverBytes: 9000, packets: 20 });
  const echo = rowOf({ protocol: 1, serverPort: null, clientBytes: 84, serverBytes: 84, packets: 2 });
  const datagram = rowOf({ protocol: 17, clientBytes: 60, serverBytes: 60, packets: 2 });
  const usage = [refused, unreachable, used, echo, datagram];
  const bytes = encodeUpload({ ...upload, minutes: [{ ...wholeMinute, usage }] });
  const sent = (read: TelemetryUpload) =>
    read.minutes[0]!.usage.map((one) => one.clientLastSentMs > 0 && one.serverLastSentMs > 0);
  assert.deepEqual(sent(decodeUpload(bytes)), [true, true, true, true, true]);
  const older = fromBinary(TelemetryUploadSchema, bytes);
  older.minutes[0]!.usage!.sentMeansService = false;
  const read = decodeUpload(toBinary(TelemetryUploadSchema, older));
  assert.deepEqual(sent(read), [false, false, true, true, true]);
});

test('columns of different length and texts that are not there are refused', () => {
  const usageOf = (change: object) => ({
    texts: ['192.0.2.1', '192.0.2.2', 'x'],
    client: [0],
    server: [1],
    name: [2],
    protocol: [6],
    serverPortPlusOne: [81],
    direction: [1],
    evidence: [1],
    clientBytes: [1n],
    serverBytes: [1n],
    packets: [2n],
    clientLastSent: [1],
    serverLastSent: [1],
    ...change,
  });
  const bytesOf = (usage: object) =>
    toBinary(
      TelemetryUploadSchema,
      create(TelemetryUploadSchema, {
        contractVersion: 1,
        spoolId,
        sequence: 1n,
        minutes: [{ minute: BigInt(minute), capture: 'eth0', role: 1, totals: {}, usage }],
      }),
    );
  assert.equal(decodeUpload(bytesOf(usageOf({}))).minutes[0]!.usage.length, 1);
  const offences = [
    { packets: [] },
    { name: [3] },
    { direction: [0] },
    { evidence: [99] },
    { clientLastSent: [60_001] },
    { clientBytes: [2n ** 60n] },
    { texts: ['192.0.2.1', '192.0.2.2', 'x', 'y'] },
  ];
  for (const offence of offences) {
    assert.throws(() => decodeUpload(bytesOf(usageOf(offence))), { code: 'telemetry.malformed' });
  }
});

test('own scans are a part of an address’s counters: more than these, or bytes without packets, are set aside with the row', () => {
  const whole = { ownScanRxBytes: 53_000n, ownScanTxBytes: 1200n, ownScanPackets: 61n };
  const bytesOf = (part: Partial<typeof whole>) => {
    const message = fromBinary(TelemetryUploadSchema, encodeUpload(upload));
    Object.assign(message.minutes[0]!.hosts[0]!, whole, part);
    return toBinary(TelemetryUploadSchema, message);
  };
  assert.deepEqual(decodeUpload(bytesOf({})).minutes[0]!.hosts[0]!.ownScan, {
    ...{ rxBytes: 53_000, txBytes: 1200, packets: 61 },
  });
  const none = bytesOf({ ownScanRxBytes: 0n, ownScanTxBytes: 0n, ownScanPackets: 0n });
  assert.equal('ownScan' in decodeUpload(none).minutes[0]!.hosts[0]!, false, 'as an older sensor sends it');
  for (const part of [
    { ownScanRxBytes: 53_001n },
    { ownScanTxBytes: 1201n },
    { ownScanPackets: 62n },
    { ownScanPackets: 0n },
    { ownScanRxBytes: 2n ** 64n - 1n },
  ]) {
    assert.throws(() => decodeUpload(bytesOf(part)), /own scans of hosts/);
    const setAside = createSetAside();
    const [told] = runAtOnce((slice) => decodeUploadSliced(bytesOf(part), slice, setAside)).minutes;
    assert.deepEqual(told!.hosts, []);
    assert.deepEqual(setAside.hosts, [{ minute, capture: 'eth0', address: '192.0.2.10' }]);
  }
});

test('what a filter dropped of an address stands beside its counters, also without any; what no link carries is set aside with the row', () => {
  const dropped = { rxBytes: 9_000_000, txBytes: 28, rxPackets: 6000, txPackets: 1 };
  const none = { rxBytes: 0, txBytes: 0, packets: 0 };
  const bytesOf = (part: Partial<typeof dropped>) => {
    const [host] = wholeMinute.hosts;
    const { ownScan: _, ...rest } = host!;
    const hosts = [{ ...rest, ...none, dropped: { ...dropped, ...part } }];
    return encodeUpload({ ...upload, minutes: [{ ...wholeMinute, hosts }] });
  };
  const hostOf = (bytes: Uint8Array) => decodeUpload(bytes).minutes[0]!.hosts[0]!;
  assert.deepEqual(hostOf(bytesOf({})).dropped, dropped);
  const empty = { rxBytes: 0, txBytes: 0, rxPackets: 0, txPackets: 0 };
  assert.equal('dropped' in hostOf(bytesOf(empty)), false, 'as an older sensor sends it');
  const setAside = createSetAside();
  const impossible = bytesOf({ txBytes: 1_000_000 });
  const [told] = runAtOnce((slice) => decodeUploadSliced(impossible, slice, setAside)).minutes;
  assert.deepEqual([told!.hosts, setAside.hosts.length], [[], 1]);
});

test('a row of spoofed traffic with a reason of a newer sensor is left out; without reasons all are of the source address', () => {
  const message = fromBinary(TelemetryUploadSchema, encodeUpload(upload));
  const columns = message.minutes[1]!.spoofed!;
  const decoded = () => decodeUpload(toBinary(TelemetryUploadSchema, message)).minutes[1]!.spoofed!;
  columns.reason[1] = 'something newer';
  assert.deepEqual(decoded(), [spoofed[0], spoofed[2], spoofed[3]]);
  columns.reason = [];
  assert.deepEqual(
    decoded().map(({ reason }) => reason),
    spoofed.map(() => undefined),
  );
});

test('columns of spoofed traffic that do not fit together are refused', () => {
  const message = fromBinary(TelemetryUploadSchema, encodeUpload(upload));
  message.minutes[1]!.spoofed!.packets.pop();
  assert.throws(
    () => decodeUpload(toBinary(TelemetryUploadSchema, message)),
    /spoofed traffic differ in length/,
  );
});

test('columns of probes that do not fit together are refused', () => {
  const columns = {
    probe: [1n],
    minute: [BigInt(minute)],
    firstSent: [59_999],
    sent: [2],
    lost: [1],
    rttMin: [1],
    rttMedian: [2],
    rttMax: [3],
    failure: [99],
  };
  const bytesOf = (change: object) =>
    toBinary(
      TelemetryUploadSchema,
      create(TelemetryUploadSchema, {
        contractVersion: 1,
        spoolId,
        sequence: 1n,
        probes: { ...columns, ...change },
      }),
    );
  const [known] = decodeUpload(bytesOf({})).probes!;
  assert.equal(known?.failure, null, 'NET-9.2: a reason of a newer sensor is none that is known');
  const doubled = Object.fromEntries(
    Object.entries(columns).map(([name, [value]]) => [name, [value, value]]),
  );
  const offences = [
    { lost: [3] },
    { sent: [0] },
    { sent: [] },
    { minute: [BigInt(minute) + 1n] },
    { firstSent: [60_000] },
    { rttMin: [3] },
    { probe: [2n ** 60n] },
    doubled,
  ];
  for (const offence of offences) {
    assert.throws(() => decodeUpload(bytesOf(offence)), { code: 'telemetry.malformed' });
  }
});

test('a small body that would become a huge one is refused before it does', () => {
  const bomb = compressUpload(new Uint8Array(uploadBytesMax + 1));
  assert.ok(bomb.length < 10_000);
  assert.throws(() => decompressUpload(bomb, 'zstd'), { code: 'telemetry.too_large' });
  assert.throws(() => decompressUpload(Uint8Array.of(1, 2, 3), 'zstd'), { code: 'telemetry.malformed' });
  assert.throws(() => decompressUpload(Uint8Array.of(1, 2, 3), 'br'), {
    code: 'telemetry.encoding_unsupported',
  });
});

test('NET-5.3: an address of an interface has a prefix length of its family', () => {
  const decode = (address: string) => {
    const { inventory } = upload;
    const [first, ...others] = inventory!.interfaces;
    const interfaces = [{ ...first!, addresses: [address] }, ...others];
    return decodeUpload(encodeUpload({ ...upload, inventory: { ...inventory!, interfaces } }));
  };
  for (const good of ['192.0.2.1/24', '192.0.2.1/32', '2001:db8::1/128']) decode(good);
  for (const bad of ['192.0.2.1', '192.0.2.1/33', '2001:db8::1/129', '192.0.2.1/024', '192.0.2.1/-1'])
    assert.throws(() => decode(bad), { code: 'telemetry.malformed' }, bad);
});

test('a number that the database has no room for is malformed, and is not acknowledged first', () => {
  const { inventory } = upload;
  for (const more of [
    { interfacesLeftOut: 2 ** 31 },
    { neighboursLeftOut: 2 ** 32 - 1 },
    { observedAtMs: Date.parse('+010000-01-01') },
  ])
    assert.throws(
      () => decodeUpload(encodeUpload({ ...upload, inventory: { ...inventory!, ...more } })),
      /Malformed telemetry: inventory\.\w+ is out of range/,
    );
  const { totals } = wholeMinute;
  const window = {
    capture: 'eth0',
    role: 'uplink',
    startedAtMs: minute * 1000,
    observedMs: 10_000,
    totals,
  } as const;
  const bytes = { spoolPendingBytes: 1, spoolBytesMax: 2, diskFreeBytes: 3, diskBytes: 4 };
  const condition = { observedAtMs: minute * 1000, spoolPendingUploads: 1, isPaused: false, ...bytes };
  const live = (hostsLeftOut: number, spoolPendingUploads: number): LiveUpload => ({
    ...{ runId: spoolId, sensorVersion: '0.1.0', windows: [{ ...window, hosts: [], hostsLeftOut }] },
    condition: { ...condition, spoolPendingUploads },
  });
  const largest = live(2 ** 31 - 1, 2 ** 31 - 1);
  assert.deepEqual(decodeLive(encodeLive(largest)), largest);
  for (const one of [live(2 ** 31, 1), live(0, 2 ** 31)])
    assert.throws(() => decodeLive(encodeLive(one)), /Malformed telemetry: .* is out of range/);
});
