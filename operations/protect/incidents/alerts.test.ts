/** What a customer is told of attacks: mails that are caught, and webhooks at a receiver in another process. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Compile } from 'typebox/compile';
import { silentReporter } from '#common/reporter/index.ts';
import type { Incident } from '#contracts/admin-api/incidents.ts';
import { webhookEvents } from '#contracts/customer-api/index.ts';
import { systemActor } from '#operations/accounts/index.ts';
import { incidentOf, recovered, secondsAgo } from '#operations/testing/incident-of.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';
import {
  type Party,
  startWebhookWorld,
  type WebhookWorld,
} from '#operations/webhooks/testing/webhook-world.ts';
import { createAlertMailer } from '../alert-mails/index.ts';
import { attackMails } from './alert-customer.ts';

let hooks: WebhookWorld;
let projectId: number;
before(async () => {
  hooks = await startWebhookWorld();
  const permissions = ['ddos_incident_ingest'];
  const project = { name: 'Monitor', permissions, clusterIds: null };
  projectId = (await hooks.world.adminProjects.create(systemActor, project)).id;
});
after(() => hooks[Symbol.asyncDispose]());

interface Target extends Party {
  path: string;
  serverId: number;
  address: string;
  email: string;
}

/** A customer with a server of two days, an endpoint for attacks, and an owner who reads mail. */
async function createTarget(
  name: string,
  events = ['server.attack_started', 'server.attack_ended'],
): Promise<Target> {
  const party = await hooks.createParty(name);
  const path = `/${name.toLowerCase()}/200`;
  await hooks.createEndpoint(party, path, events);
  const { serverId } = await hooks.world.deploy(party.tenant, `${name.toLowerCase()}-1`);
  await hooks.world.backdate(serverId, '2 days');
  const [first] = await hooks.world.addresses.listAllocationsOfServers([serverId]);
  return { ...party, path, serverId, address: first!.address, email: party.owner.email };
}

function mailer(send?: (mail: { id?: string }) => Promise<string | null>) {
  const { post } = hooks.world;
  return createAlertMailer(attackMails, {
    db: () => hooks.world.database.db,
    post: send ? { linkTo: (path) => post.linkTo(path), send } : post,
    clock: hooks.world.clock,
    reporter: silentReporter,
  });
}

async function deliver(...incidents: Incident[]): Promise<void> {
  await hooks.world.protectIncidents.receive(
    { projectId, clusterIds: null },
    { contract_version: 1, source_site_id: 1, cluster_ids: [hooks.world.clusterId], incidents },
  );
}

/** What has reached the customer so far, the oldest first. */
async function toldTo(target: Target): Promise<{ mails: string[]; events: string[] }> {
  await hooks.sender().drain();
  await mailer().drain();
  const mails = await hooks.world.mailsTo(target.email);
  return {
    mails: mails.map(({ subject }) => subject).toReversed(),
    events: hooks.at(target.path).map(({ body }) => body.type),
  };
}

const choose = (
  target: Target,
  wanted: { viewsOn?: boolean; attackMail?: boolean; attackWebhook?: boolean },
) =>
  hooks.world.protectSettings.change(target.actor, target.serverId, {
    viewsOn: true,
    attackMail: true,
    attackWebhook: true,
    portMail: false,
    portWebhook: false,
    findingMail: 'off',
    findingWebhook: false,
    ...wanted,
  });

test('NET-3.2: start and end of an attack are told once each by mail and signed webhook, however often they are delivered', async () => {
  const target = await createTarget('Once');
  const incident = incidentOf(target.address);
  const ended = recovered({ ...incident, revision: 8 });
  await deliver(
    incident,
    incident,
    { ...incident, revision: 2 },
    { ...incident, revision: 3, state: 'stale' },
  );
  const subject = 'once-1 is under attack: SYN flood';
  assert.deepEqual(await toldTo(target), { mails: [subject], events: ['server.attack_started'] });
  await Promise.all([deliver(ended), deliver(ended), deliver({ ...ended, revision: 10 })]);
  await deliver(incident);
  assert.deepEqual(await toldTo(target), {
    mails: [subject, 'Attack on once-1 has ended'],
    events: ['server.attack_started', 'server.attack_ended'],
  });
  for (const { body, fitting } of hooks.at(target.path)) {
    assert.equal(fitting, 1, 'signed');
    const { data } = webhookEvents.find(({ type }) => type === body.type)!;
    assert.ok(Compile(data).Check(body.data) as boolean, JSON.stringify(body));
    assert.deepEqual([body.data.server_id, body.data.incident_id], [target.serverId, incident.id]);
  }
});

test('the mail says since when, what, how hard, and where to look, and a line break in a name is no header', async () => {
  const target = await createTarget('Words');
  await hooks.world.database.pool.query('update servers set name = $2 where id = $1', [
    target.serverId,
    'web\r\nBcc: all@example.com',
  ]);
  const incident = incidentOf(target.address, { started_at: secondsAgo(90) });
  await deliver(incident);
  await toldTo(target);
  const [mail] = await hooks.world.mailsTo(target.email);
  assert.equal(mail!.subject, 'web Bcc: all@example.com is under attack: SYN flood');
  const since = incident.started_at.slice(0, 19).replace('T', ' ');
  for (const part of [since, 'SYN flood', '31,000 packets/s', '14.0 Mbit/s', target.address])
    assert.ok(mail!.text.includes(part), `${part} in ${mail!.text}`);
  assert.ok(mail!.text.includes(`/client/servers/${target.serverId}/protect/incidents/${incident.id}\n`));
});

test('information and drills are never told', async () => {
  const target = await createTarget('Quiet');
  for (const more of [{ severity: 'info' as const }, { drill: true }]) {
    const incident = incidentOf(target.address, more);
    await deliver(incident, recovered(incident));
  }
  assert.deepEqual(await toldTo(target), { mails: [], events: [] });
});

test('a drill whose operator asked for it is mailed as a drill, and goes to no program of the customer', async () => {
  const target = await createTarget('Rehearsal');
  const drill = incidentOf(target.address, { drill: true, drill_is_mailed: true });
  await deliver(drill, drill, recovered(drill));
  assert.deepEqual(await toldTo(target), {
    mails: ['Drill: rehearsal-1 is under attack: SYN flood', 'Drill: Attack on rehearsal-1 has ended'],
    events: [],
  });
  for (const { text } of await hooks.world.mailsTo(target.email))
    assert.match(text, /This is a drill that we run/);
  const off = await createTarget('Silent');
  await choose(off, { attackMail: false });
  const other = incidentOf(off.address, { drill: true, drill_is_mailed: true });
  await deliver(other, recovered(other));
  assert.deepEqual(await toldTo(off), { mails: [], events: [] }, 'the customer has turned these mails off');
});

test('an attack that comes back within five minutes is not told again; after that it is a new one', async () => {
  const target = await createTarget('Flapping');
  const incident = incidentOf(target.address, {
    started_at: secondsAgo(3_000),
    last_observed_at: secondsAgo(2_000),
  });
  const at = (revision: number, ago: number) => ({
    ...incident,
    revision,
    last_observed_at: secondsAgo(ago),
  });
  const end = (revision: number, ago: number) =>
    recovered(at(revision - 1, ago), { recovered_at: secondsAgo(ago) });
  const pair = ['server.attack_started', 'server.attack_ended'];
  await deliver(incident, end(2, 1_900), at(3, 1_601), end(4, 1_500));
  assert.deepEqual((await toldTo(target)).events, pair);
  await deliver(at(5, 1_199));
  assert.deepEqual((await toldTo(target)).events, [...pair, 'server.attack_started']);
  await deliver(end(6, 1_000));
  const told = await toldTo(target);
  assert.deepEqual(told.events, [...pair, ...pair]);
  assert.equal(told.mails.length, 4);
});

test('NET-1.6: with the views off nothing is told; an attack that began before is not told when they are on again', async () => {
  const target = await createTarget('Hidden');
  await choose(target, { viewsOn: false });
  const incident = incidentOf(target.address);
  await deliver(incident);
  await choose(target, {});
  await deliver(
    { ...incident, revision: 2 },
    incidentOf(target.address),
    recovered({ ...incident, revision: 2 }),
  );
  assert.deepEqual(await toldTo(target), { mails: [], events: [] });
  const now = secondsAgo(0);
  await deliver(incidentOf(target.address, { started_at: now, last_observed_at: now }));
  assert.deepEqual((await toldTo(target)).events, ['server.attack_started']);
});

test('NET-1.6: a mail that waits while the views are switched off is not sent, nor when they are on again', async () => {
  const target = await createTarget('Queued');
  await deliver(incidentOf(target.address));
  await choose(target, { viewsOn: false });
  assert.deepEqual((await toldTo(target)).mails, []);
  await choose(target, {});
  assert.deepEqual((await toldTo(target)).mails, []);
});

test('NET-1.6: each channel is chosen by itself, and an end goes only where the start went', async () => {
  const target = await createTarget('Chosen');
  await choose(target, { attackMail: false });
  const incident = incidentOf(target.address);
  await deliver(incident);
  await choose(target, { attackMail: true });
  await deliver(recovered(incident));
  assert.deepEqual(await toldTo(target), {
    mails: [],
    events: ['server.attack_started', 'server.attack_ended'],
  });
  const silent = await createTarget('Silent');
  await choose(silent, { attackWebhook: false });
  const other = incidentOf(silent.address);
  await deliver(other, recovered(other));
  const told = await toldTo(silent);
  assert.deepEqual([told.mails.length, told.events.length], [2, 0]);
});

test('mails go to active members with a verified address, and to no other organization', async () => {
  const [target, stranger] = [await createTarget('Members'), await createTarget('Stranger')];
  const { accounts, database } = hooks.world;
  const readers: string[] = [];
  for (const kind of ['member', 'left', 'unverified', 'deactivated']) {
    const email = `${kind}@members.test`;
    readers.push(email);
    const person = { email, name: kind, password: 'a password for tests' };
    const { id } = await accounts.createPerson(systemActor, person);
    await accounts.addMember(systemActor, target.tenant.organizationId, id);
    if (kind === 'deactivated') await accounts.setPersonActive(systemActor, id, false);
    if (kind === 'unverified')
      await database.pool.query('update people set email_verified_at = null where id = $1', [id]);
  }
  await deliver(incidentOf(target.address));
  const left = await accounts.findPersonByEmail('left@members.test');
  await accounts.removeMember(systemActor, target.tenant.organizationId, left!.id);
  assert.equal((await toldTo(target)).mails.length, 1);
  const counts = await Promise.all(readers.map(async (email) => (await hooks.world.mailsTo(email)).length));
  assert.deepEqual(counts, [1, 0, 0, 0]);
  assert.deepEqual(await toldTo(stranger), { mails: [], events: [] });
});

test('a filter against an attack is told when it begins and when it ends, once each, where the start of the attack was told', async () => {
  const target = await createTarget('Filtered', ['server.filter_started', 'server.filter_ended']);
  const incident = incidentOf(target.address);
  const working = { kind: 'dropped', at: secondsAgo(20), ended_at: null, dropped_pps: 24_870 } as const;
  const over = { ...working, ended_at: secondsAgo(2) };
  await deliver(
    incident,
    { ...incident, revision: 2, actions: [working] },
    { ...incident, revision: 3, actions: [{ ...working, dropped_pps: 7 }] },
  );
  assert.deepEqual((await toldTo(target)).events, ['server.filter_started']);
  const ended = recovered({ ...incident, revision: 3, actions: [working] });
  const later = { kind: 'dropped', at: secondsAgo(1), ended_at: secondsAgo(1) } as const;
  await deliver(
    ended,
    { ...ended, revision: 5, actions: [over] },
    { ...ended, revision: 6, actions: [over, later] },
  );
  assert.deepEqual((await toldTo(target)).events, [
    ...['server.filter_started', 'server.filter_ended', 'server.filter_started', 'server.filter_ended'],
  ]);
  for (const { body } of hooks.at(target.path))
    assert.equal(Compile(webhookEvents.find(({ type }) => type === body.type)!.data).Check(body.data), true);
  const quiet = await createTarget('Unfiltered', ['server.filter_started']);
  await choose(quiet, { attackWebhook: false });
  await deliver(incidentOf(quiet.address, { actions: [working] }));
  assert.deepEqual((await toldTo(quiet)).events, []);
});

test('what was not stored is not told, and what is stored is told after a crash', async () => {
  const target = await createTarget('Crash');
  const incident = incidentOf(target.address);
  const { db } = hooks.world.database;
  const { alertCustomer } = await import('./alert-customer.ts');
  await deliver({ ...incident, drill: true });
  const told = db.transaction().execute(async (tx) => {
    const of = { serverId: target.serverId, tenantId: target.tenant.id };
    const before = { recoveredBefore: null, actionsBefore: [] };
    await alertCustomer({ canMail: true }, tx, { of, incident, ...before, nowMs: worldNowMs() });
    throw new Error('crash before the commit');
  });
  await assert.rejects(told, /crash/);
  assert.deepEqual(await toldTo(target), { mails: [], events: [] });
  await deliver({ ...incident, revision: 2 });
  assert.deepEqual((await toldTo(target)).mails.length, 1);
});

test('a mail that fails is sent again under the same Message-ID, and its end is not sent before it', async () => {
  const target = await createTarget('Retried');
  const incident = incidentOf(target.address);
  await deliver(incident, recovered(incident));
  const ids: (string | undefined)[] = [];
  await mailer(async ({ id }) => {
    ids.push(id);
    return 'the mail server could not be reached';
  }).drain();
  assert.equal(ids.length, 1, 'the end waits');
  await hooks.world.database.pool.query(
    "update attack_mails set next_attempt_at = svc_now() where status = 'pending'",
  );
  const sent: (string | undefined)[] = [];
  await mailer(async ({ id }) => {
    sent.push(id);
    return null;
  }).drain();
  assert.deepEqual([sent.length, sent[0]], [2, ids[0]]);
  assert.notEqual(sent[1], sent[0]);
});

test('history that is delivered a day late is stored and not told', async () => {
  const target = await createTarget('Late');
  const day = { started_at: secondsAgo(90_000), last_observed_at: secondsAgo(87_000) };
  await deliver(recovered(incidentOf(target.address, day), { recovered_at: secondsAgo(86_900) }));
  assert.deepEqual(await toldTo(target), { mails: [], events: [] });
});
