/**
 * From the packets of a scan to the customer's page: the sensor's capture, the monitor's facts and points, and the list
 * in operations, with the real wire formats between them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listIdentities } from '#monitor/feeds/minutes/build-points.ts';
import { createMonitorWorld, createSpool, testMinute } from '#monitor/testing/index.ts';
import { createWorld } from '#operations/testing/create-world.ts';
import { createCapture } from '#sensor/capture/index.ts';
import { ascii, ethernet, ip, reverse, Tcp, tcp, udp } from '#sensor/testing/frames.ts';

const scanned = [21, 22, 23, 25, 53, 80, 110, 143, 443, 445, 3306, 3389, 5432, 8080];
const stranger = '198.51.100.77';

/** A scan of closed ports over TCP and UDP, and one visitor of a web server on another port. */
function packetsTo(address: string): Uint8Array[] {
  const packets = scanned.flatMap((toPort) => {
    const ends = { from: stranger, fromPort: 41_000, to: address, toPort };
    const probe = udp(ends, ascii('probe'));
    const unreachable = Uint8Array.from([3, 3, 0, 0, 0, 0, 0, 0, ...probe.subarray(0, 28)]);
    return [
      tcp(ends, Tcp.syn, 1),
      tcp(reverse(ends), Tcp.reset | Tcp.ack, 0),
      probe,
      ip(unreachable, { from: address, to: stranger, protocol: 1 }),
    ];
  });
  const visit = { from: stranger, fromPort: 42_000, to: address, toPort: 8443 };
  return [
    ...packets,
    tcp(visit, Tcp.syn, 1),
    tcp(reverse(visit), Tcp.syn | Tcp.ack, 1),
    tcp(visit, Tcp.ack | Tcp.push, 2, ascii('hello')),
    tcp(reverse(visit), Tcp.ack | Tcp.push, 2, new Uint8Array(400)),
  ];
}

test('NET-2.4.4: a scan of 14 closed ports puts no service on the customer’s page, a visit does', async () => {
  await using operations = await createWorld();
  await using monitor = await createMonitorWorld();
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
  capture.listeningSince(testMinute * 1000);
  for (const packet of packetsTo(address)) {
    const frame = ethernet(packet);
    capture.observe(frame, 0, frame.length, frame.length, testMinute + 5, 0, -1);
  }
  const minutes = capture.closeMinutes((testMinute + 60) * 1000);
  await monitor.apply(createSpool().upload(minutes.map((report) => ({ ...report, role: 'uplink' }))));
  const { siteId } = monitor;
  const rows = await monitor.applications.readAddressApplications(
    siteId,
    address,
    testMinute,
    testMinute + 60,
  );
  assert.ok(rows.length > 10, 'the scan is in the facts');

  const point = {
    timestamp: new Date(testMinute * 1000).toISOString(),
    inbound_bps: 1,
    outbound_bps: 1,
    pps: 1,
    expected_bps: null,
    expected_pps: null,
    ddos_bps: null,
    ddos_pps: null,
    coverage: 1,
    applications: listIdentities(rows),
  };
  const answer = await fetch(`${operations.url}/api/admin/v1/protect/telemetry/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      contract_version: 1,
      source_site_id: 1,
      cluster_ids: [operations.clusterId],
      targets: [{ id, address, assigned_at: assignedAt, series: [point] }],
    }),
  });
  const { receipts } = (await answer.json()) as { receipts: { receipt: string }[] };
  assert.equal(receipts[0]?.receipt, 'accepted');

  const cookie = await operations.signIn(email);
  const read = (tail: string) =>
    fetch(`${operations.url}/client/servers/${serverId}/protect${tail}`, {
      headers: { cookie, accept: 'text/html' },
    });
  const { applications } = (await (await read('/applications.json')).json()) as {
    applications: { name: string; server_port: number | null }[];
  };
  assert.deepEqual(
    applications.map((row) => [row.name, row.server_port]),
    [['HTTPS', 8443]],
  );
  const page = await (await read('')).text();
  for (const name of ['SSH', 'Telnet', 'PostgreSQL', 'Remote Desktop', 'ICMP']) {
    assert.doesNotMatch(page, new RegExp(`>${name}<`), name);
  }
});
