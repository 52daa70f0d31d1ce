import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Compile } from 'typebox/compile';
import type { ProjectedFinding } from '#contracts/admin-api/vulnerabilities.ts';
import { webhookEvents } from '#contracts/customer-api/index.ts';
import { type StoredEvent, takeUndispatched } from '#operations/events/index.ts';
import type { ProtectSettings } from '#operations/protect/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { secondsAgo } from '#operations/testing/incident-of.ts';
import {
  createFindingMonitor,
  findingOf,
  type ProjectionOptions,
  projectedService,
  projectionOf,
} from '#operations/testing/projection-of.ts';
import { ownerOf } from '#operations/testing/scan-of.ts';
import type { OutboxSender } from '#service-kit/outbox/index.ts';

let world: World;
let monitor: Awaited<ReturnType<typeof createFindingMonitor>>;
before(async () => {
  world = await createWorld();
  monitor = await createFindingMonitor(world);
});
after(() => world[Symbol.asyncDispose]());

const on: ProtectSettings = {
  ...{ viewsOn: true, attackMail: true, attackWebhook: true, portMail: false, portWebhook: false },
  ...{ findingMail: 'high', findingWebhook: true },
};

async function createReader(name: string, choice: Partial<ProtectSettings> | null = {}) {
  const customer = await world.createCustomer(name);
  await world.database.pool.query('update people set email_verified_at = svc_now() where id = $1', [
    customer.owner.id,
  ]);
  const { serverId } = await world.deploy(customer.tenant, name.toLowerCase());
  await world.backdate(serverId, '2 days');
  const [first, second] = await world.addresses.listAllocationsOfServers([serverId]);
  const actor = ownerOf(customer);
  const choose = (wanted: Partial<ProtectSettings>) =>
    world.protectSettings.change(actor, serverId, { ...on, ...wanted });
  if (choice !== null) await choose(choice);
  await happened(customer.tenant.organizationId);
  // After the choice, and each check after the one before.
  let ahead = 1;
  const deliver = async (
    findings: readonly ProjectedFinding[],
    more: ProjectionOptions = {},
    of = first!,
  ) => {
    ahead += 1;
    const services = more.services ?? [projectedService({ findings: [...findings] })];
    const projection = projectionOf(of, { checkedSecondsAgo: -ahead, ...more, services });
    assert.deepEqual(await monitor.deliver(projection), ['accepted']);
    return projection;
  };
  const events = async () =>
    (await happened(customer.tenant.organizationId)).map(({ type, data }) => [type, data.cve_id]);
  const mails = async () => {
    await send();
    return world.mailsTo(customer.email);
  };
  return { ...customer, serverId, actor, choose, deliver, events, mails, first: first!, second: second! };
}

/** Events that were taken out, of all organizations. */
let taken: StoredEvent[] = [];

/** What has happened to an organization since it was asked last. */
async function happened(organizationId: number): Promise<StoredEvent[]> {
  const events = await world.database.db.transaction().execute((tx) => takeUndispatched(tx, 10_000));
  const all = [...taken, ...events];
  taken = all.filter((event) => event.organizationId !== organizationId);
  return all.filter((event) => event.organizationId === organizationId);
}

async function send(): Promise<void> {
  const mailer = world.protectFindings.work.parts?.find(({ name }) => name === 'finding mails');
  await (mailer as OutboxSender).drain();
}

const [a, b, c] = [
  findingOf('CVE-2024-6387'),
  findingOf('CVE-2023-38408', { severity: 'critical', score: 9.8, known_exploited: true }),
  findingOf('CVE-2023-48795', { severity: 'medium', score: 5.9 }),
];

test('new findings are told once each by webhook, and by one mail from the chosen severity on', async () => {
  const reader = await createReader('Told');
  const projection = await reader.deliver([a, b, c]);
  const events = await happened(reader.tenant.organizationId);
  assert.deepEqual(
    events.map(({ type, data }) => [type, data.cve_id]),
    [b, a, c].map(({ cve_id }) => ['server.finding_new', cve_id]),
  );
  const kind = webhookEvents.find(({ type }) => type === 'server.finding_new')!;
  for (const { data } of events) assert.ok(Compile(kind.data).Check(data), JSON.stringify(data));
  assert.equal(
    events[0]!.data.href,
    `/api/v2/servers/${reader.serverId}/findings?tenant=${reader.tenant.id}`,
  );
  const [mail, ...others] = await reader.mails();
  assert.deepEqual(others, []);
  assert.match(mail!.subject, /^2 potential vulnerabilities found on told$/);
  assert.match(
    mail!.text,
    /CVE-2023-38408 \(critical, 9\.8, known to be exploited\) tcp\/22: OpenSSH 9\.6p1\nCVE-2024-6387 \(high, 8\.1\)/,
  );
  assert.ok(!mail!.text.includes('CVE-2023-48795'));
  assert.ok(mail!.text.includes(`\n${world.url}/client/servers/${reader.serverId}/protect#findings\n`));
  assert.match(mail!.text, /not endorsed or certified by the NVD/);
  assert.deepEqual(await monitor.deliver(projection), ['unchanged']);
  await reader.deliver([a, b, c]);
  await reader.deliver([]);
  await reader.deliver([a, b, c]);
  assert.deepEqual(await reader.events(), [], 'found again');
  assert.equal((await reader.mails()).length, 1);
});

test('a finding at both addresses of a server is told once, and another version anew', async () => {
  const reader = await createReader('Both');
  await Promise.all([reader.deliver([a]), reader.deliver([a], {}, reader.second)]);
  assert.deepEqual(await reader.events(), [['server.finding_new', a.cve_id]]);
  const services = [projectedService({ version: '9.7p1', findings: [a] })];
  await reader.deliver([], { services });
  assert.deepEqual(await reader.events(), [['server.finding_new', a.cve_id]]);
  assert.equal((await reader.mails()).length, 2);
});

test('a known finding that is rated up to the chosen severity is mailed then, once, and no new event', async () => {
  const reader = await createReader('Rated');
  const unrated = findingOf('CVE-2024-6387', { severity: null, score: null });
  await reader.deliver([unrated]);
  assert.deepEqual(await reader.events(), [['server.finding_new', a.cve_id]]);
  assert.deepEqual(await reader.mails(), []);
  await reader.deliver([a]);
  await reader.deliver([unrated]);
  await reader.deliver([findingOf(a.cve_id, { severity: 'critical', score: 9.1 })]);
  assert.deepEqual(await reader.events(), []);
  assert.equal((await reader.mails()).length, 1);
});

test('ignored findings and those of the original of a package are not told', async () => {
  const reader = await createReader('Ignored', { findingWebhook: false, findingMail: 'off' });
  const low = findingOf(a.cve_id, { severity: 'low', score: 3 });
  await reader.deliver([low]);
  const [found] = await world.protectFindings.list(
    reader.actor,
    { serverId: reader.serverId, tenantId: reader.tenant.id },
    { limit: 1 },
  );
  await world.protectFindings.ignore(reader.actor, reader.serverId, {
    ...{ ...found!, address: null, reason: 'Known', until: null },
  });
  await reader.choose({});
  await reader.deliver([findingOf(a.cve_id, { severity: 'critical' })], { checkedSecondsAgo: -60 });
  const packaged = { assessment: 'unable', reason: 'distribution_package', findings: [b] } as const;
  await reader.deliver([], {
    checkedSecondsAgo: -61,
    services: [
      projectedService({ findings: [a] }),
      projectedService({ port: 80, ...packaged, findings: [b] }),
    ],
  });
  assert.deepEqual(await reader.events(), []);
  assert.deepEqual(await reader.mails(), []);
});

test('NET-1.6: by default, with the views off, or about checks from before the choice, nothing is told', async () => {
  const silent = await createReader('Silent', null);
  const off = await createReader('Off', { viewsOn: false });
  const late = await createReader('Late');
  for (const reader of [silent, off]) await reader.deliver([a, b]);
  await late.deliver([a, b], { checkedSecondsAgo: 30 });
  for (const reader of [silent, off, late]) {
    assert.deepEqual(await reader.events(), []);
    assert.deepEqual(await reader.mails(), []);
    await reader.choose({});
    await reader.deliver([a, b], { checkedSecondsAgo: -100 });
    assert.deepEqual(await reader.events(), [], 'known since before');
    assert.deepEqual(await reader.mails(), []);
  }
});

test('a check that arrives a day late is not told, and what it found is known from then on', async () => {
  const reader = await createReader('Day');
  await world.database.pool.query(
    `update protect_settings set finding_mail_since = finding_mail_since - interval '2 days',
       finding_webhook_since = finding_webhook_since - interval '2 days' where server_id = $1`,
    [reader.serverId],
  );
  const observedAt = (seconds: number, findings: ProjectedFinding[]) => ({
    checkedSecondsAgo: seconds,
    services: [projectedService({ observed_at: secondsAgo(seconds + 60), findings })],
  });
  await reader.deliver([], observedAt(24 * 3600 + 60, [a]));
  assert.deepEqual(await reader.events(), []);
  await reader.deliver([], observedAt(24 * 3600 - 600, [a, b]));
  assert.deepEqual(await reader.events(), [['server.finding_new', b.cve_id]]);
});

test('a mail that is not wanted any more is not sent', async () => {
  const reader = await createReader('Unwanted');
  await reader.deliver([a]);
  await reader.choose({ findingMail: 'critical' });
  assert.deepEqual(await reader.mails(), []);
});

test('a check that finds hundreds makes 50 events and one mail', async () => {
  const reader = await createReader('Many');
  await reader.deliver(Array.from({ length: 400 }, (_, n) => findingOf(`CVE-2020-${1000 + n}`)));
  assert.equal((await reader.events()).length, 50);
  const [mail, ...others] = await reader.mails();
  assert.deepEqual(others, []);
  assert.match(mail!.subject, /^400 potential/);
  assert.match(mail!.text, /and 380 more/);
});
