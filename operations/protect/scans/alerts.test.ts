import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Compile } from 'typebox/compile';
import { webhookEvents } from '#contracts/customer-api/index.ts';
import { takeUndispatched } from '#operations/events/index.ts';
import type { ProtectSettings } from '#operations/protect/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createScanMonitor } from '#operations/testing/deliver-scans.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import { ownerOf, scanOf } from '#operations/testing/scan-of.ts';
import type { OutboxSender } from '#service-kit/outbox/index.ts';

let world: World;
let monitor: Awaited<ReturnType<typeof createScanMonitor>>;
const deliver: typeof monitor.deliver = (...scans) => monitor.deliver(...scans);
before(async () => {
  world = await createWorld();
  monitor = await createScanMonitor(world);
});
after(() => world[Symbol.asyncDispose]());

const on: ProtectSettings = {
  ...{ viewsOn: true, attackMail: true, attackWebhook: true, portMail: true, portWebhook: true },
  ...{ findingMail: 'off', findingWebhook: false },
};

async function createReader(name: string, choice: Partial<typeof on> | null = {}) {
  const customer = await world.createCustomer(name);
  await world.database.pool.query('update people set email_verified_at = svc_now() where id = $1', [
    customer.owner.id,
  ]);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
  await world.backdate(serverId, '2 days');
  const [first] = await world.addresses.listAllocationsOfServers([serverId]);
  const actor = ownerOf(customer);
  const choose = (wanted: Partial<typeof on>) =>
    world.protectSettings.change(actor, serverId, { ...on, ...wanted });
  if (choice !== null) await choose(choice);
  await happened(customer.tenant.organizationId);
  return { ...customer, serverId, actor, choose, first: first! };
}

/** Events that were taken out, of all organizations. */
let taken: Awaited<ReturnType<typeof takeUndispatched>> = [];

/** What has happened to an organization since it was asked last. */
async function happened(organizationId: number) {
  const events = await world.database.db.transaction().execute((tx) => takeUndispatched(tx, 1_000));
  const all = [...taken, ...events];
  taken = all.filter((event) => event.organizationId !== organizationId);
  return all.filter((event) => event.organizationId === organizationId);
}

async function send(): Promise<void> {
  const mailer = world.protectScans.work.parts?.find(({ name }) => name === 'port mails');
  await (mailer as OutboxSender).drain();
}

/** A scan that ends now, so after the settings of the test. */
const now = { endedSecondsAgo: -1 };

test('NET-1.6: newly open ports are told once by mail and webhook where that is on, and closed ones by webhook', async () => {
  const reader = await createReader('Told');
  const scan = scanOf(reader.first, { ...now, ports: [22, 80] });
  await deliver(scan);
  await send();
  const [mail, ...others] = await world.mailsTo(reader.email);
  assert.deepEqual(others, []);
  assert.match(mail!.subject, /2 new open ports on told/);
  assert.match(mail!.text, /tcp\/22: OpenSSH\ntcp\/80\n/);
  assert.ok(mail!.text.includes(`\n${world.url}/client/servers/${reader.serverId}/protect#ports\n`));
  const events = await happened(reader.tenant.organizationId);
  assert.deepEqual(
    events.map(({ type, data }) => [type, data.port]),
    [
      ['server.port_opened', 22],
      ['server.port_opened', 80],
    ],
  );
  for (const { type, data } of events) {
    const kind = webhookEvents.find((each) => each.type === type)!;
    assert.ok(Compile(kind.data).Check(data), JSON.stringify(data));
  }
  const { receipts } = await world.protectScans.receive(monitor.sender, {
    ...{ contract_version: 1, source_site_id: 1, cluster_ids: [world.clusterId], results: [scan] },
  });
  assert.equal(receipts[0]!.receipt, 'unchanged');
  await deliver(
    scanOf(reader.first, { started_at: scan.finished_at, finished_at: scan.finished_at, ports: [] }),
  );
  assert.deepEqual(await happened(reader.tenant.organizationId), [], 'seen open when that scan began');
  const later = new Date(Date.parse(scan.finished_at) + 1000).toISOString();
  await deliver({ ...scanOf(reader.first, { ports: [] }), started_at: later, finished_at: later });
  assert.deepEqual(
    (await happened(reader.tenant.organizationId)).map(({ type, data }) => [type, data.port]),
    [
      ['server.port_closed', 22],
      ['server.port_closed', 80],
    ],
  );
  await send();
  assert.equal((await world.mailsTo(reader.email)).length, 1);
});

test('NET-1.6: by default, with the views off, or about scans before the switch, nothing is told of ports', async () => {
  const silent = await createReader('Silent', null);
  await deliver(scanOf(silent.first, now));
  const off = await createReader('Off', { viewsOn: false });
  await deliver(scanOf(off.first, now));
  const late = await createReader('Late');
  await deliver(scanOf(late.first, { endedSecondsAgo: 600 }));
  await send();
  for (const { email, tenant } of [silent, off, late]) {
    assert.deepEqual(await world.mailsTo(email), []);
    assert.deepEqual(await happened(tenant.organizationId), []);
  }
});

test('a mail that is not wanted any more is not sent', async () => {
  const reader = await createReader('Unwanted');
  await deliver(scanOf(reader.first, now));
  await reader.choose({ portMail: false });
  await send();
  assert.deepEqual(await world.mailsTo(reader.email), []);
});

test('the end of a requested scan is told as an event, of a routine scan not', async () => {
  const reader = await createReader('Requested', null);
  const { requests } = await world.protectScans.request(reader.actor, reader.serverId);
  const { id } = requests.find((each) => each.allocationId === reader.first.id)!;
  await deliver(scanOf(reader.first, { ...now, request_id: id, state: 'partial' }));
  await deliver(scanOf(reader.first, { ...now, profile: 'common' }));
  const events = await happened(reader.tenant.organizationId);
  assert.deepEqual(
    events.map(({ type, data }) => [type, data.scan_id, data.address]),
    [['server.scan_completed', id, reader.first.address]],
  );
  const kind = webhookEvents.find(({ type }) => type === 'server.scan_completed')!;
  assert.ok(Compile(kind.data).Check(events[0]!.data));
});

test('NET-1.6: the end of a scan that was requested before the views were switched off is not told', async () => {
  const reader = await createReader('Hidden');
  const { requests } = await world.protectScans.request(reader.actor, reader.serverId);
  const { id } = requests.find((each) => each.allocationId === reader.first.id)!;
  const at = secondsAgo(0);
  await monitor.say(id, 'running', { started_at: at, heartbeat_at: at, progress: 1 });
  await reader.choose({ viewsOn: false });
  await deliver(scanOf(reader.first, { ...now, request_id: id }));
  await send();
  assert.deepEqual(await happened(reader.tenant.organizationId), []);
  assert.deepEqual(await world.mailsTo(reader.email), []);
});

test('a scan that opens thousands of ports makes 50 events and one mail', async () => {
  const reader = await createReader('Many');
  await deliver(scanOf(reader.first, { ...now, ports: Array.from({ length: 4096 }, (_, n) => n + 1) }));
  assert.equal((await happened(reader.tenant.organizationId)).length, 50);
  await send();
  const mails = await world.mailsTo(reader.email);
  assert.equal(mails.length, 1);
  assert.match(mails[0]!.text, /and 4,076 more/);
});
