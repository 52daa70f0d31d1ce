import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import type { Incident, IncidentsRequest } from '#contracts/admin-api/incidents.ts';
import { systemActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { createIncidentRetention } from '#operations/protect/incidents/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { incidentOf, recovered, secondsAgo } from '#operations/testing/incident-of.ts';
import { moveWorldClock } from '#operations/testing/world-time.ts';

let world: World;
let token: string;
let address: Allocation;
let subject: { serverId: number; tenantId: number };

before(async () => {
  world = await createWorld();
  token = await world.createToken(['ddos_incident_ingest']);
});
after(() => world[Symbol.asyncDispose]());

/** Every test has a server of its own, whose addresses were assigned two hours ago. */
async function freshServer(name: string): Promise<Allocation> {
  const { tenant } = await world.createCustomer(name);
  const { serverId } = await world.deploy(tenant, name.toLowerCase().replaceAll(' ', '-'));
  await world.backdate(serverId, '2 hours');
  subject = { serverId, tenantId: tenant.id };
  address = (await world.addresses.listAllocationsOfServers([serverId]))[0]!;
  return address;
}

type Sent = { bearer?: string } & Partial<Pick<IncidentsRequest, 'source_site_id' | 'cluster_ids'>>;

function post(incidents: readonly unknown[], { bearer = token, ...more }: Sent = {}): Promise<Response> {
  return fetch(`${world.url}/api/admin/v1/protect/incidents/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      contract_version: 1,
      source_site_id: 7,
      cluster_ids: [world.clusterId],
      incidents,
      ...more,
    }),
  });
}

async function send(incidents: readonly Incident[], more: Sent = {}) {
  const answer = await post(incidents, more);
  assert.equal(answer.status, 200, await answer.clone().text());
  return (
    (await answer.json()) as { outcomes: { id: string; outcome: string; allocation_id: number | null }[] }
  ).outcomes;
}

const outcomeOf = async (incident: Incident, more: Sent = {}) => (await send([incident], more))[0]!.outcome;

const stored = (of = subject) => world.protectIncidents.list(systemActor, of, { limit: 100 });

async function projectWith(name: string, clusterIds: readonly number[] | null = null) {
  const permissions = ['ddos_incident_ingest'];
  const { id } = await world.adminProjects.create(systemActor, { name, permissions, clusterIds });
  return { id, token: (await world.adminProjects.issueToken(systemActor, id, null)).token };
}

type Stored = Awaited<ReturnType<typeof stored>>[number];

test('what an older monitor calls a GRE flood is a protocol flood', async () => {
  const { address: own } = await freshServer('Older monitor');
  const vectors = [{ class: 'gre_flood' as const, packets_share: 1, bytes_share: 1, ports: [] }];
  assert.equal(await outcomeOf(incidentOf(own, { class: 'gre_flood', vectors })), 'applied');
  const read = async () => {
    const [{ class: name, vectors: found }] = (await stored()) as [Stored];
    return [name, found.map((one) => one.class)];
  };
  assert.deepEqual(await read(), ['protocol_flood', ['protocol_flood']]);
  await world.database.pool.query(
    'update protect_incidents set class = $1, vectors = $2 where server_id = $3',
    ['gre_flood', JSON.stringify(vectors), subject.serverId],
  );
  const sql = new URL('../../migrations/0360-rename-gre-floods.sql', import.meta.url);
  await world.database.pool.query(readFileSync(sql, 'utf8'));
  assert.deepEqual(await read(), ['protocol_flood', ['protocol_flood']], 'what was stored before');
});

test('NET-4.g: each incident of a delivery has its outcome, in the order sent, and sent again it is unchanged', async () => {
  const { address: own, id } = await freshServer('Batch');
  const batch = [incidentOf(own), incidentOf('203.0.113.250'), incidentOf(own, { direction: 'outbound' })];
  const outcomes = await send(batch);
  assert.deepEqual(
    outcomes.map((each) => [each.id, each.outcome, each.allocation_id]),
    [
      [batch[0]!.id, 'applied', id],
      [batch[1]!.id, 'unmatched', null],
      [batch[2]!.id, 'applied', id],
    ],
  );
  const first = await stored();
  assert.equal(first.length, 2);
  assert.deepEqual(
    (await send(batch)).map(({ outcome }) => outcome),
    ['unchanged', 'unmatched', 'unchanged'],
  );
  assert.deepEqual(await stored(), first);
});

test('NET-4.g: times, rates and vectors come back as the monitor sent them', async () => {
  const incident = incidentOf((await freshServer('Exact')).address, {
    actions: [{ kind: 'blackholed', at: secondsAgo(30), ended_at: null }],
  });
  await send([incident]);
  const [row] = await stored();
  assert.deepEqual(
    [row!.startedAt, row!.detectedAt, row!.lastObservedAt].map((at) => at.toISOString()),
    [incident.started_at, incident.detected_at, incident.last_observed_at],
  );
  assert.deepEqual(
    [row!.currentPps, row!.peakPps, row!.peakBps, row!.totalBytes, row!.totalPackets],
    [25_000, 31_000, 14_000_000, 90_000_000, 1_500_000],
  );
  assert.deepEqual(row!.vectors, incident.vectors);
  assert.deepEqual(row!.actions, incident.actions);
});

test('NET-3.2: only an explicit recovery with a higher revision ends an incident; replayed revisions change nothing', async () => {
  const incident = incidentOf((await freshServer('Recovery')).address);
  const stateNow = async () => (await stored())[0]!.state;
  await send([incident]);
  const stale = { ...incident, revision: 5, state: 'stale' as const, current: null };
  assert.equal(await outcomeOf(stale), 'applied');
  assert.equal(await stateNow(), 'stale');
  for (const revision of [1, 4, 5])
    assert.equal(await outcomeOf(recovered(incident, { revision })), 'unchanged', `revision ${revision}`);
  assert.equal(await stateNow(), 'stale');
  assert.equal(await outcomeOf(recovered(incident, { revision: 6 })), 'applied');
  assert.equal(await stateNow(), 'recovered');
  assert.equal(await outcomeOf({ ...incident, revision: 3 }), 'unchanged');
  assert.equal(await stateNow(), 'recovered');
});

test('NET-3.2: a late active observation with a higher revision reopens a recovered incident', async () => {
  const incident = incidentOf((await freshServer('Reopened')).address);
  await send([incident]);
  await send([recovered(incident)]);
  assert.equal(await outcomeOf({ ...incident, revision: 3 }), 'applied');
  const [row] = await stored();
  assert.deepEqual([row!.state, row!.recoveredAt], ['active', null]);
});

test('NET-4.1: interface and CIDR targets, private and foreign addresses are unmatched', async () => {
  await freshServer('Targets');
  const targets = [
    { kind: 'prefix', value: '203.0.113.0/24' },
    { kind: 'capture', value: 'node-1/uplink' },
    // The exact address of the server, said to be a prefix.
    { kind: 'prefix', value: address.address },
    { kind: 'host', value: '10.0.0.1' },
    { kind: 'host', value: 'not an address' },
    { kind: 'host', value: `${address.address}/32` },
  ] as const;
  const outcomes = await send(targets.map((target) => incidentOf('203.0.113.1', { target: { ...target } })));
  assert.deepEqual(new Set(outcomes.map(({ outcome }) => outcome)), new Set(['unmatched']));
  assert.deepEqual(await stored(), []);
});

test('NET-4.1: a project speaks only about its own clusters, and only about those that it maps', async () => {
  const { address: own } = await freshServer('Clusters');
  const foreign = await projectWith('Elsewhere', [world.clusterId + 1]);
  assert.equal(await outcomeOf(incidentOf(own), { bearer: foreign.token }), 'unmatched');
  assert.equal(await outcomeOf(incidentOf(own), { cluster_ids: [] }), 'unmatched');
  assert.equal(await outcomeOf(incidentOf(own), { cluster_ids: [world.clusterId + 1] }), 'unmatched');
  assert.deepEqual(await stored(), []);
  const incident = incidentOf(own);
  assert.equal(await outcomeOf(incident), 'applied');
  const later = { ...incident, revision: 2, state: 'stale' as const };
  assert.equal(await outcomeOf(later, { cluster_ids: [] }), 'unmatched');
  assert.equal((await stored())[0]!.state, 'active');
});

test('NET-4.1: an incident is matched with the server that had the address when it began', async () => {
  const { address: own } = await freshServer('Begun');
  const before = incidentOf(own, { started_at: secondsAgo(3 * 3600), detected_at: secondsAgo(3 * 3600) });
  assert.equal(await outcomeOf(before), 'unmatched');
  assert.deepEqual(await stored(), []);
});

/** Destroys the server and gives its address to another one, which had nothing before. */
async function passOn(name: string): Promise<void> {
  const { address: text, clusterId } = address;
  await world.servers.destroyServer(systemActor, null, subject.serverId);
  await world.jobs.drain();
  const former = subject;
  const next = await freshServer(name);
  await world.database.pool.query(
    `update allocations set address = $1, assigned_at = (select max(released_at) from allocations where server_id = $3)
     where id = $2 and cluster_id = $4`,
    [text, next.id, former.serverId, clusterId],
  );
}

test('NET-3.2: an incident stays with the server that was matched first; the next owner of the address sees nothing', async () => {
  await freshServer('First owner');
  const first = subject;
  const incident = incidentOf(address.address);
  await send([incident]);
  await passOn('Second owner');
  const later = (revision: number, last: string) => ({ ...incident, revision, last_observed_at: last });
  assert.equal(await outcomeOf(later(2, secondsAgo(0))), 'identity_conflict');
  assert.deepEqual(await stored(), []);
  assert.deepEqual(
    (await stored(first)).map(({ id, lastObservedAt }) => [id, lastObservedAt.toISOString()]),
    [[incident.id, incident.last_observed_at]],
  );
});

test('NET-4.1: a bound incident that names another target is an identity conflict and changes nothing', async () => {
  const incident = incidentOf((await freshServer('Conflict')).address);
  await send([incident]);
  for (const target of [
    { kind: 'host', value: '203.0.113.9' },
    { kind: 'prefix', value: address.address },
  ] as const)
    assert.equal(await outcomeOf(recovered(incident, { target })), 'identity_conflict');
  assert.equal((await stored())[0]!.state, 'active');
  assert.equal(await outcomeOf(recovered(incident)), 'applied');
});

test('NET-4.1: after its server is destroyed a bound incident is terminal; what was applied stays unchanged', async () => {
  const incident = incidentOf((await freshServer('Destroyed')).address);
  await send([incident]);
  await world.servers.destroyServer(systemActor, null, subject.serverId);
  await world.jobs.drain();
  assert.equal(await outcomeOf(incident), 'unchanged');
  const [terminal] = await send([recovered(incident)]);
  assert.deepEqual([terminal!.outcome, terminal!.allocation_id], ['terminal', address.id]);
  const goingOn = incidentOf(address.address, { last_observed_at: secondsAgo(0) });
  assert.equal(await outcomeOf(goingOn), 'unmatched', 'a new one that went on after the release');
});

test('NET-3.2: another project cannot take or end an incident while its source delivers', async () => {
  const incident = incidentOf((await freshServer('Two monitors')).address);
  const other = await projectWith('Second monitor');
  await send([incident]);
  assert.equal(await outcomeOf(recovered(incident), { bearer: other.token }), 'identity_conflict');
  assert.equal(await outcomeOf(recovered(incident), { source_site_id: 8 }), 'identity_conflict');
  assert.equal(
    await outcomeOf(incidentOf(address.address), { bearer: other.token }),
    'unmatched',
    'mirrored',
  );
  assert.equal((await stored())[0]!.state, 'active');
  await world.database.pool.query(
    `update protect_incidents set source_seen_at = svc_now() - interval '15 minutes' where incident_id = $1`,
    [incident.id],
  );
  assert.equal(await outcomeOf(recovered(incident), { bearer: other.token }), 'applied');
});

test('NET-4.1: a source site that does not own the traffic of an address tells of no attacks on it', async () => {
  await freshServer('Mirrored');
  const owner = await projectWith('Owner of the traffic');
  const other = await projectWith('Mirror of the traffic');
  await world.database.pool.query(
    `insert into protect_series (allocation_id, tenant_id, server_id, address, source_project_id, source_site_id)
     values ($1, $2, $3, $4, $5, 1)`,
    [address.id, subject.tenantId, subject.serverId, address.address, owner.id],
  );
  assert.equal(await outcomeOf(incidentOf(address.address), { bearer: other.token }), 'unmatched');
  const [conflict] = (await world.protectTraffic.readSources(systemActor, other.id)).conflicts;
  assert.equal(conflict!.ownerProjectName, 'Owner of the traffic');
  assert.equal(
    await outcomeOf(incidentOf(address.address), { bearer: owner.token, source_site_id: 1 }),
    'applied',
  );
});

test('NET-4.g: one incident delivered by six senders at once is stored once', async () => {
  const incident = incidentOf((await freshServer('Parallel')).address);
  const outcomes = await Promise.all(Array.from({ length: 6 }, () => outcomeOf(incident)));
  assert.deepEqual(outcomes.toSorted(), ['applied', ...new Array(5).fill('unchanged')]);
  assert.equal((await stored()).length, 1);
});

test('NET-5.1, NET-7: without the permission a delivery is refused and the error names ddos_incident_ingest', async () => {
  const bearer = await world.createToken(['protect_telemetry_ingest']);
  const answer = await post([incidentOf('203.0.113.1')], { bearer });
  assert.equal(answer.status, 403);
  const { error } = (await answer.json()) as { error: { details: unknown } };
  assert.match(JSON.stringify(error), /permission_missing/);
  assert.match(JSON.stringify(error.details), /ddos_incident_ingest/);
});

test('NET-9.1, NET-4.l: discovery advertises the incident feed in version 1 to projects that may deliver it', async () => {
  const capabilities = async (bearer: string) =>
    (
      (await (
        await fetch(`${world.url}/api/admin/v1/discovery/`, {
          headers: { authorization: `Bearer ${bearer}` },
        })
      ).json()) as { capabilities: Record<string, unknown> }
    ).capabilities;
  const { ddos_incident_ingest: flag, ddos_incident_contract_version: version } = await capabilities(token);
  assert.deepEqual([flag, version], [true, 1]);
  const others = await capabilities(await world.createToken(['vm_inventory_read']));
  assert.equal(others.ddos_incident_ingest, undefined);
});

test('NET-4.g: contradicting times are refused with the field and a reason, and nothing of the batch is lost or stored', async () => {
  const { address: own } = await freshServer('Bad input');
  const bad = [
    incidentOf(own),
    incidentOf(own, { state: 'recovered' }),
    incidentOf(own, { last_observed_at: secondsAgo(600) }),
    incidentOf(own, { last_observed_at: secondsAgo(-3600) }),
  ];
  const answer = await post(bad);
  assert.equal(answer.status, 422);
  const text = await answer.text();
  for (const path of [
    'incidents.1.recovered_at',
    'incidents.2.last_observed_at',
    'incidents.3.last_observed_at',
  ])
    assert.ok(text.includes(path), `${path} in ${text}`);
  assert.deepEqual(await stored(), []);
  assert.equal((await post(new Array(101).fill(incidentOf(own)))).status, 422);
  assert.equal(
    (await post([{ ...incidentOf(own), source: '198.51.100.1' }])).status,
    422,
    'no unknown field',
  );
});

test('NET-8.R2: incidents are deleted a year after they were last observed, newer ones stay', async () => {
  await using old = await createWorld();
  const { tenant } = await old.createCustomer('Retained');
  const { serverId } = await old.deploy(tenant, 'retained');
  await old.backdate(serverId, '2 days');
  const [allocation] = await old.addresses.listAllocationsOfServers([serverId]);
  const project = await old.adminProjects.create(systemActor, {
    name: 'Monitor of the past',
    permissions: ['ddos_incident_ingest'],
    clusterIds: null,
  });
  const yesterday = { started_at: secondsAgo(86_400), last_observed_at: secondsAgo(86_300) };
  const incidents = [incidentOf(allocation!.address, yesterday), incidentOf(allocation!.address)];
  const sender = { projectId: project.id, clusterIds: null };
  const deliver = () =>
    old.protectIncidents.receive(sender, {
      contract_version: 1,
      source_site_id: 1,
      cluster_ids: [old.clusterId],
      incidents,
    });
  await deliver();
  await moveWorldClock(old.database, '1 year -1 hour');
  const { reporter, clock } = old;
  assert.equal(await createIncidentRetention({ db: () => old.database.db, clock, reporter }).runOnce(), true);
  const left = () => old.protectIncidents.list(systemActor, { serverId, tenantId: tenant.id }, { limit: 10 });
  assert.deepEqual(
    (await left()).map(({ id }) => id),
    [incidents[1]!.id],
  );
  const again = await deliver();
  assert.deepEqual(
    again.outcomes.map(({ outcome }) => outcome),
    ['terminal', 'unchanged'],
    'an expired one does not come back',
  );
});
