/**
 * From the packets of a scan to the customer's page: the sensor's capture, the monitor's facts and points, and the list
 * in operations, with the real wire formats between them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildPoints } from '#monitor/feeds/minutes/build-points.ts';
import { createMonitorWorld, createSpool, testMinute } from '#monitor/testing/index.ts';
import { createWorld } from '#operations/testing/create-world.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { ascii, ethernet, ip, reverse, Tcp, tcp, udp } from '#sensor/testing/frames.ts';

const scanned = [21, 22, 23, 25, 53, 80, 110, 143, 443, 445, 3306, 3389, 5432, 8080];
const stranger = '198.51.100.77';

/** A scan of closed ports over TCP and UDP. */
function scanOf(address: string, from: string): Uint8Array[] {
  return scanned.flatMap((toPort) => {
    const ends = { from, fromPort: 41_000, to: address, toPort };
    const probe = udp(ends, ascii('probe'));
    const unreachable = Uint8Array.from([3, 3, 0, 0, 0, 0, 0, 0, ...probe.subarray(0, 28)]);
    return [
      tcp(ends, Tcp.syn, 1),
      tcp(reverse(ends), Tcp.reset | Tcp.ack, 0),
      probe,
      ip(unreachable, { from: address, to: from, protocol: 1 }),
    ];
  });
}

/** A visitor of a web server on another port. */
function visitOf(address: string): Uint8Array[] {
  const visit = { from: stranger, fromPort: 42_000, to: address, toPort: 8443 };
  return [
    tcp(visit, Tcp.syn, 1),
    tcp(reverse(visit), Tcp.syn | Tcp.ack, 1),
    tcp(visit, Tcp.ack | Tcp.push, 2, ascii('hello')),
    tcp(reverse(visit), Tcp.ack | Tcp.push, 2, new Uint8Array(400)),
  ];
}

/** A customer's server, and what a sensor and a monitor say of these packets of its address. */
async function observe(packetsOf: (address: string) => Uint8Array[], scanner: string | null) {
  await using stack = new AsyncDisposableStack();
  const operations = stack.use(await createWorld());
  const monitor = stack.use(await createMonitorWorld());
  const token = await operations.createToken(['protect_telemetry_ingest']);
  const { email, tenant } = await operations.createCustomer('Scanned');
  const { serverId } = await operations.deploy(tenant, 'scanned-1');
  await operations.backdate(serverId, '36 hours');
  const [allocation] = await operations.addresses.listAllocationsOfServers([serverId]);
  const { id, address, assignedAt } = allocation!;
  const capture = createCapture({
    name: 'eth0',
    role: 'uplink',
    linkType: 1,
    registrableDomain: () => null,
    local: { prefixes: [], addresses: [address] },
  });
  if (scanner !== null) capture.setOwnScans([{ sourceAddress: scanner, address }]);
  capture.listeningSince(testMinute * 1000);
  for (const packet of packetsOf(address)) {
    const frame = ethernet(packet);
    capture.observe(frame, 0, frame.length, frame.length, testMinute + 5, 0, -1);
  }
  const reports = capture.closeMinutes((testMinute + 60) * 1000);
  await monitor.apply(createSpool().upload(reports.map((report) => ({ ...report, role: 'uplink' }))));
  const of = [monitor.siteId, address, testMinute, testMinute + 60] as const;
  const applications = await monitor.applications.readAddressApplications(...of);
  const minutes = await monitor.traffic.readAddressMinutes(...of);
  const series = buildPoints(
    { minutes, applications, verdicts: new Map() },
    { withIdentity: true, withReason: true, withOwnScan: true, withDropped: true },
  );
  const answer = await fetch(`${operations.url}/api/admin/v1/protect/telemetry/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      contract_version: 1,
      source_site_id: 1,
      cluster_ids: [operations.clusterId],
      targets: [{ id, address, assigned_at: assignedAt, series }],
    }),
  });
  const { receipts } = (await answer.json()) as { receipts: { receipt: string }[] };
  assert.equal(receipts[0]?.receipt, 'accepted');
  const cookie = await operations.signIn(email);
  const held = stack.move();
  return {
    address,
    applications,
    get: (tail: string) =>
      fetch(`${operations.url}/client/servers/${serverId}/${tail}`, {
        headers: { cookie, accept: 'text/html' },
      }),
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  };
}

const readApplications = async (get: (tail: string) => Promise<Response>) => {
  const answer = await get('traffic?range=24h&by=service&format=json&table=service');
  const { rows } = (await answer.json()) as { rows: { application: string; service: string | null }[] };
  return rows.flatMap(({ application, service }) => (service === null ? [] : [[application, service]]));
};

test('NET-2.4.4: a scan of 14 closed ports puts no service on the customer’s page, a visit does', async () => {
  await using observed = await observe(
    (address) => [...scanOf(address, stranger), ...visitOf(address)],
    null,
  );
  const { applications, get } = observed;
  assert.ok(applications.length > 10, 'the scan is in the facts');
  assert.deepEqual(await readApplications(get), [['HTTPS', 'tcp/8443']]);
  const page = await (await get('protect')).text();
  for (const name of ['SSH', 'Telnet', 'PostgreSQL', 'Remote Desktop', 'ICMP']) {
    assert.doesNotMatch(page, new RegExp(`>${name}<`), name);
  }
});

test('NET-2.4.2: the provider’s own scan is, to the byte, the part of the customer’s minute that its packets were, and in no fact of an application', async () => {
  const scanner = '198.51.100.1';
  await using observed = await observe(
    (address) => [...scanOf(address, scanner), ...visitOf(address)],
    scanner,
  );
  const { address, applications, get } = observed;
  assert.deepEqual(
    applications.map((row) => row.serverPort),
    [8443],
  );
  const isTo = (packet: Uint8Array) => packet.subarray(16, 20).join('.') === address;
  const bytes = (packets: Uint8Array[], isInbound: boolean) =>
    packets.reduce((sum, packet) => (isTo(packet) === isInbound ? sum + packet.length : sum), 0);
  const [scan, visit] = [scanOf(address, scanner), visitOf(address)];
  const { minutes } = (await (await get('traffic/minutes.json?range=6h')).json()) as {
    minutes: Record<string, unknown>[];
  };
  assert.deepEqual(
    minutes.map((row) => [
      ...[row.inbound_bytes, row.outbound_bytes],
      ...[row.provider_scan_inbound_bytes, row.provider_scan_outbound_bytes],
    ]),
    [
      [
        ...[bytes([...scan, ...visit], true), bytes([...scan, ...visit], false)],
        ...[bytes(scan, true), bytes(scan, false)],
      ],
    ],
  );
  assert.deepEqual(await readApplications(get), [['HTTPS', 'tcp/8443']]);
});
