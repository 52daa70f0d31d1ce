import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  captureMinute,
  createMonitorWorld,
  createSpool,
  host,
  type MonitorWorld,
  type SiteWorld,
  testMinute,
  usageRow,
} from '#monitor/testing/index.ts';
import { describeService, nameApplication } from './catalog.ts';
import type { ApplicationView } from './index.ts';

let monitor: MonitorWorld;
before(async () => {
  monitor = await createMonitorWorld();
});
after(() => monitor[Symbol.asyncDispose]());

const range = [testMinute * 1000 - 3_600_000, testMinute * 1000 + 3_600_000] as const;
const list = (world: SiteWorld, view: ApplicationView) =>
  world.applications.list(world.siteId, view, ...range, 100);
const brief = async (world: SiteWorld, view: ApplicationView) =>
  (await list(world, view)).rows.map((row) => [row.name, row.inboundBytes, row.outboundBytes, row.vantage]);

const uplink = (usage: ReturnType<typeof usageRow>[], minute = testMinute) =>
  captureMinute({ minute, usage });
const bridge = (usage: ReturnType<typeof usageRow>[], minute = testMinute) =>
  captureMinute({ minute, capture: 'br0', role: 'bridge', usage });

test('NET-2.2.5: Internet traffic counts at the uplink; the bridge adds names and no bytes', async () => {
  const world = await monitor.atNewSite();
  const seen = usageRow({ clientBytes: 100, serverBytes: 1000 });
  const named = usageRow({ name: 'lan-only.example', evidence: 'dns', clientBytes: 7, serverBytes: 8 });
  const nameless = usageRow({
    name: '198.51.100.99',
    server: '198.51.100.99',
    serverPort: 9999,
    evidence: 'none',
  });
  await world.apply(createSpool().upload([uplink([seen]), bridge([seen, named, nameless])]));
  assert.deepEqual(await brief(world, 'outbound'), [
    ['example.net', 1000, 100, 'uplink'],
    ['lan-only.example', null, null, 'bridge'],
  ]);
  const use = await list(world, 'outbound');
  assert.equal(use.bytes, 1100);
});

test('NET-2.2.5: the bridge counts only in minutes in which the uplink was idle or absent', async () => {
  const world = await monitor.atNewSite();
  const spool = createSpool();
  const row = (serverBytes: number) => usageRow({ clientBytes: 0, serverBytes });
  await world.apply(
    spool.upload([uplink([row(1)]), bridge([row(10)])]),
    spool.upload([uplink([], testMinute + 60), bridge([row(200)], testMinute + 60)]),
    spool.upload([bridge([row(3000)], testMinute + 120)]),
    spool.upload([uplink([row(0)], testMinute + 180), bridge([row(40_000)], testMinute + 180)]),
  );
  const use = await list(world, 'outbound');
  assert.deepEqual(
    use.rows.map((row) => row.inboundBytes),
    [43_201],
  );
});

test('NET-2.2.5: each direction has its owner, and internal traffic belongs to the bridge', async () => {
  const world = await monitor.atNewSite();
  const inbound = usageRow({
    direction: 'inbound',
    client: '198.51.100.50',
    server: '192.0.2.10',
    serverPort: 22,
    name: '198.51.100.50',
    evidence: 'none',
    clientBytes: 3,
    serverBytes: 4,
  });
  const internal = usageRow({ direction: 'internal', server: '192.0.2.11', clientBytes: 5, serverBytes: 6 });
  await world.apply(
    createSpool().upload([
      uplink([usageRow(), { ...internal, clientBytes: 900 }]),
      bridge([usageRow({ clientBytes: 77 }), inbound, internal]),
    ]),
  );
  assert.deepEqual(await brief(world, 'outbound'), [['example.net', 1000, 100, 'uplink']]);
  assert.deepEqual(await brief(world, 'inbound'), [['SSH', 3, 4, 'bridge']]);
  assert.deepEqual(await brief(world, 'internal'), [['example.net', 6, 5, 'bridge']]);
  assert.equal((await list(world, 'all')).bytes, 1100 + 7 + 11);
});

test('NET-2.2.5: over time each minute counts at its owner too, and applications without a line are in the rest', async () => {
  const world = await monitor.atNewSite();
  const spool = createSpool();
  const other = usageRow({ name: 'example.org', clientBytes: 1, serverBytes: 2 });
  await world.apply(
    spool.upload([uplink([usageRow(), other]), bridge([usageRow(), other])]),
    spool.upload([bridge([usageRow({ serverBytes: 50 })], testMinute + 60)]),
  );
  const steps = await world.applications.listSteps({
    siteId: world.siteId,
    view: 'outbound',
    fromMs: testMinute * 1000,
    toMs: testMinute * 1000 + 120_000,
    stepSeconds: 60,
    names: ['example.net'],
  });
  assert.deepEqual(
    steps.toSorted((a, b) => a.timeMs - b.timeMs || b.bytes - a.bytes),
    [
      { timeMs: testMinute * 1000, name: 'example.net', bytes: 1100 },
      { timeMs: testMinute * 1000, name: null, bytes: 3 },
      { timeMs: testMinute * 1000 + 60_000, name: 'example.net', bytes: 150 },
    ],
  );
});

test('NET-2.4.4: an address has its own Internet applications, with when it last sent itself', async () => {
  const world = await monitor.atNewSite();
  const asClient = usageRow({
    clientLastSentMs: testMinute * 1000 + 1,
    serverLastSentMs: testMinute * 1000 + 2,
  });
  const asHost = usageRow({
    direction: 'inbound',
    client: '198.51.100.50',
    server: '192.0.2.10',
    serverPort: 22,
    name: '198.51.100.50',
    evidence: 'none',
    clientBytes: 30,
    serverBytes: 40,
    clientLastSentMs: testMinute * 1000 + 9,
    serverLastSentMs: 0,
  });
  const internal = usageRow({ direction: 'internal', server: '192.0.2.11' });
  const foreign = usageRow({ client: '192.0.2.99' });
  await world.apply(
    createSpool().upload([
      uplink([asClient, asHost, internal, foreign]),
      bridge([asClient, asHost, internal, foreign]),
    ]),
  );
  const read = await world.applications.readAddressApplications(
    world.siteId,
    '192.0.2.10',
    testMinute,
    testMinute + 60,
  );
  assert.deepEqual(read, [
    {
      minute: testMinute,
      direction: 'inbound',
      name: 'SSH',
      protocol: 6,
      serverPort: 22,
      evidence: 'none',
      isAttributed: true,
      inboundBytes: 30,
      outboundBytes: 40,
      lastSentMs: null,
    },
    {
      minute: testMinute,
      direction: 'outbound',
      name: 'example.net',
      protocol: 6,
      serverPort: 443,
      evidence: 'tls_sni',
      isAttributed: true,
      inboundBytes: 1000,
      outboundBytes: 100,
      lastSentMs: testMinute * 1000 + 1,
    },
  ]);
});

test("NET-2.4.4: an address whose host's uplink is silent is read at the bridge, independent of other hosts' uplinks", async () => {
  const world = await monitor.atNewSite();
  const other = await world.enrol('node-2');
  await world.send(createSpool().upload([uplink([usageRow({ client: '192.0.2.99' })])]), other);
  await world.apply(createSpool().upload([bridge([usageRow()])]));
  const read = await world.applications.readAddressApplications(
    world.siteId,
    '192.0.2.10',
    testMinute,
    testMinute + 60,
  );
  assert.deepEqual(
    read.map((row) => [row.name, row.inboundBytes]),
    [['example.net', 1000]],
  );
});

test('NET-2.2.7: exact pairs are kept for minutes of the last 24 hours only', async () => {
  await using world = await createMonitorWorld();
  const old = testMinute - 25 * 3600;
  await world.apply(createSpool().upload([uplink([usageRow()]), uplink([usageRow()], old)]));
  const pairs = await world.rows<{ minute: number }>(
    'select extract(epoch from minute)::int as minute from endpoint_pairs',
  );
  assert.deepEqual(pairs, [{ minute: testMinute }]);
  const facts = await world.rows('select 1 from application_facts');
  assert.equal(facts.length, 2);
  const [row] = (await list(world, 'outbound')).rows;
  assert.deepEqual(row?.topConnection, { client: '192.0.2.10', server: '198.51.100.7', pairs: 1 });
});

test('NET-2.2.3: a known domain names its product, evidence comes before the port, the remote address is last', () => {
  const name = (part: object) => nameApplication({ ...usageRow(), ...part });
  assert.deepEqual(name({ name: 'googlevideo.com' }), { name: 'YouTube', isAttributed: true });
  assert.deepEqual(name({ name: 'example.org', serverPort: 22 }), {
    name: 'example.org',
    isAttributed: true,
  });
  const unnamed = { name: '198.51.100.7', evidence: 'none' };
  assert.deepEqual(name({ ...unnamed }), { name: 'HTTPS', isAttributed: true });
  assert.deepEqual(name({ ...unnamed, protocol: 17, serverPort: 123 }), { name: 'NTP', isAttributed: true });
  assert.deepEqual(name({ ...unnamed, serverPort: 50_123 }), { name: '198.51.100.7', isAttributed: false });
  assert.deepEqual(name({ name: 'constructor' }), { name: 'constructor', isAttributed: true });
});

test('NET-2.2.3: names from sensors are checked again; invalid text does not reach pages or customers', async () => {
  const name = (part: object) => nameApplication({ ...usageRow(), ...part });
  const hostile = [
    '<b>free money</b>',
    'call 0900',
    'paypal\u202ecom',
    'EXAMPLE.ORG',
    'a..b',
    'x'.repeat(64),
    '',
  ];
  for (const text of [...hostile, `${'a.'.repeat(126)}ab`]) {
    assert.deepEqual(name({ name: text }), { name: 'HTTPS', isAttributed: true, evidence: 'none' }, text);
    assert.deepEqual(
      name({ name: text, serverPort: 50_123 }),
      { name: '198.51.100.7', isAttributed: false, evidence: 'none' },
      text,
    );
    assert.deepEqual(name({ name: text, evidence: 'none', direction: 'inbound', serverPort: 50_123 }), {
      name: '192.0.2.10',
      isAttributed: false,
    });
    const label = name({ name: text, evidence: 'ip_protocol', protocol: 47, serverPort: null });
    assert.deepEqual(label, { name: 'GRE', isAttributed: true });
  }
  assert.equal(name({ name: 'GRE', evidence: 'ip_protocol', protocol: 6 }).name, 'IP');
  assert.equal(name({ name: 'IPsec AH', evidence: 'ip_protocol', protocol: 51 }).name, 'IPsec AH');
  assert.equal(
    name({ name: 'IPsec AH', evidence: 'ip_protocol', protocol: 51, server: '2001:db8::1' }).name,
    'IP',
  );
  assert.equal(name({ name: '2001:db8::7', evidence: 'http_host' }).name, '2001:db8::7');
  const world = await monitor.atNewSite();
  await world.apply(
    createSpool().upload([captureMinute({ usage: [usageRow({ name: '<b>free money</b>' })] })]),
  );
  assert.deepEqual(
    (await list(world, 'outbound')).rows.map((row) => [row.name, row.evidence]),
    [['HTTPS', 'none']],
  );
});

test('NET-2.2.4: the label of an IP protocol comes before domain rules', () => {
  const label = nameApplication({ name: 'GRE', evidence: 'ip_protocol', protocol: 47, serverPort: null });
  assert.deepEqual(label, { name: 'GRE', isAttributed: true });
  assert.deepEqual(
    [describeService(47, null), describeService(6, 443), describeService(17, 53)],
    ['IP 47', 'tcp/443', 'udp/53'],
  );
});

test('NET-2.2.2: a row expands to ten destinations, ten devices and five pairs, counted before they are cut', async () => {
  const world = await monitor.atNewSite();
  const locals = Array.from({ length: 12 }, (_, i) => `192.0.2.${20 + i}`);
  const usage = locals.map((client, i) =>
    usageRow({ client, server: `198.51.100.${20 + i}`, clientBytes: 100 * (i + 1), serverBytes: 0 }),
  );
  // Two addresses of one device count as one; the owner of a third is unknown.
  const keyOf = (i: number) =>
    i < 2 ? 'br0|02:00:00:00:00:01' : i === 2 ? '' : `br0|02:00:00:00:01:${10 + i}`;
  const hosts = locals.map((address, i) => host(address, 1, 1, keyOf(i)));
  await world.apply(createSpool().upload([captureMinute({ usage, hosts }), bridge(usage)]));
  const key = { name: 'example.net', protocol: 6, serverPort: 443 };
  const detail = await world.applications.detail(world.siteId, 'outbound', ...range, key);
  assert.deepEqual(
    [detail.destinationCount, detail.deviceCount, detail.pairCount, detail.isFallback],
    [12, 11, 12, false],
  );
  assert.deepEqual([detail.destinations.length, detail.devices.length, detail.pairs.length], [10, 10, 5]);
  assert.deepEqual(detail.pairs[0], { client: '192.0.2.31', server: '198.51.100.31', bytes: 1200 });
  assert.deepEqual(detail.devices.slice(-2), [
    { deviceKey: 'br0|02:00:00:00:01:13', address: null, bytes: 400 },
    { deviceKey: 'br0|02:00:00:00:00:01', address: null, bytes: 300 },
  ]);
});

test('NET-2.2.2: without a kept pair the devices are fallback attribution', async () => {
  const world = await monitor.atNewSite();
  const old = testMinute - 30 * 3600;
  const hosts = [host('192.0.2.10', 1, 1, 'br0|02:00:00:00:00:01')];
  await world.apply(createSpool().upload([captureMinute({ minute: old, usage: [usageRow()], hosts })]));
  const span = [old * 1000, (old + 3600) * 1000] as const;
  const key = { name: 'example.net', protocol: 6, serverPort: 443 };
  assert.deepEqual(await world.applications.detail(world.siteId, 'outbound', ...span, key), {
    destinations: [],
    destinationCount: 0,
    devices: [{ deviceKey: 'br0|02:00:00:00:00:01', address: null, bytes: 1100 }],
    deviceCount: 1,
    pairs: [],
    pairCount: 0,
    isFallback: true,
  });
});

test('NET-2.2.6: notices report the evidence and the owners of the bytes, and that parser loss makes the window partial', async () => {
  const world = await monitor.atNewSite();
  const usage = [
    usageRow({ clientBytes: 0, serverBytes: 600 }),
    usageRow({ evidence: 'none', name: '198.51.100.7', clientBytes: 0, serverBytes: 300 }),
    usageRow({ evidence: 'none', name: '198.51.100.7', serverPort: 9, clientBytes: 0, serverBytes: 100 }),
  ];
  const hosts = [host('192.0.2.10', 30, 0, 'br0|02:00:00:00:00:01'), host('192.0.2.11', 10, 0)];
  const totals = { ipPackets: 90, kernelDropped: 10, detailTruncated: 3 };
  const read = async () => {
    const use = await list(world, 'outbound');
    return world.applications.notices(world.siteId, 'outbound', ...range, use);
  };
  const spool = createSpool();
  await world.apply(spool.upload([captureMinute({ usage, hosts, totals })]));
  const first = await read();
  const { isPartial, packetCoverage, domainRatio, portRatio, deviceRatio, detailTruncated } = first;
  assert.deepEqual(
    { isPartial, packetCoverage, domainRatio, portRatio, deviceRatio, detailTruncated },
    {
      isPartial: false,
      packetCoverage: 0.9,
      domainRatio: 0.6,
      portRatio: 0.3,
      deviceRatio: 0.75,
      detailTruncated: 3,
    },
  );
  await world.apply(spool.upload([captureMinute({ minute: testMinute + 60, totals: { parserDropped: 1 } })]));
  assert.equal((await read()).isPartial, true);
  assert.equal((await read()).parserDropped, 1);
});

test('NET-2.2.7: a pair keeps its name, its evidence and the counts behind it, once for all captures', async () => {
  const world = await monitor.atNewSite();
  await world.apply(createSpool().upload([uplink([usageRow()]), bridge([usageRow({ clientBytes: 90 })])]));
  const pairs = await world.applications.listPairs(world.siteId, 'outbound', ...range, 10);
  assert.deepEqual(pairs, [
    {
      minute: testMinute,
      direction: 'outbound',
      client: '192.0.2.10',
      server: '198.51.100.7',
      name: 'example.net',
      protocol: 6,
      serverPort: 443,
      evidence: 'tls_sni',
      captures: 2,
      clientBytes: 100,
      serverBytes: 1000,
      packets: 10,
    },
  ]);
});
