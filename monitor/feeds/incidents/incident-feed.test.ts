import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import type { IncidentsRequest } from '#contracts/admin-api/incidents.ts';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { compressUpload, encodeUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { describeIncidents } from '#monitor/commands/sync-traffic.ts';
import { compose, partsOfFeed } from '#monitor/composition.ts';
import { readConfig } from '#monitor/config.ts';
import { requireIncidentsAlone } from '#monitor/incidents/index.ts';
import { createIncidentSpool, observation } from '#monitor/incidents/testing/observations.ts';
import { allCapabilities, send } from '#monitor/operations-client/testing/operations-stub.ts';
import { systemActor } from '#monitor/operators/index.ts';
import type { EnrolledSensor } from '#monitor/sensors/index.ts';
import { createWorld, type World } from '#monitor/testing/world.ts';
import type { FeedsDeps, RunningFeed, TickResult } from '../index.ts';

let world: World;
let sensor: EnrolledSensor;
const spool = createIncidentSpool();
let start = 0;

before(async () => {
  world = await createWorld();
  const { token } = await world.sensors.createToken(systemActor, world.siteId);
  const request = { token, host_name: 'node-1', node: 'node-1', sensor_version: '0.2.0' };
  sensor = (await world.sensors.authenticate((await world.sensors.enrol(request))!.credential))!;
});
after(() => world[Symbol.asyncDispose]());
beforeEach(async () => {
  // Of each test, since an incident is stale when it was not heard of for a while.
  start = Math.floor(Date.now() / 1000) * 1000 - 30_000;
  world.operations.postedIncidents.length = 0;
  world.operations.incidentOutcome = () => 'applied';
  world.operations.intercept = () => false;
  await world.database.pool.query(
    'truncate incidents, incident_observations, feed_cursors, feed_states, leases cascade',
  );
});

const say = (...incidents: IncidentObservation[]) =>
  world.inbox.receiveUrgent(
    sensor,
    compressUpload(encodeUpload(spool(...incidents))),
    'zstd',
    requireIncidentsAlone,
  );

let running: RunningFeed | null = null;

/** The feed as a process has it that has just started, after the one before has ended. */
async function startFeed(change: Partial<FeedsDeps> = {}): Promise<RunningFeed> {
  await running?.loop.stop();
  running = world.createFeed(change).find('incidents');
  return running;
}

async function tick(feed: RunningFeed): Promise<TickResult> {
  const result = await feed.runOnce();
  if (typeof result === 'string') throw new Error(`no tick: ${result}`);
  return result;
}
const sent = () => world.operations.postedIncidents.flatMap((request) => request.incidents);
const flood = (part: Partial<IncidentObservation> = {}) =>
  observation({ startedAtMs: start, lastObservedAtMs: start + 29_000, ...part } as never);

test('NET-4.1: attacks on exact addresses are sent with the clusters of their site; on prefixes and captures they stay here', async () => {
  await say(
    flood(),
    flood({ target: { kind: 'prefix', value: '198.51.100.0/24' } }),
    flood({ target: { kind: 'capture', value: 'eth0' } }),
  );
  const { counts } = await tick(await startFeed());
  assert.deepEqual([counts.due, counts.applied], [1, 1]);
  const [request, ...others] = world.operations.postedIncidents;
  assert.equal(others.length, 0);
  assert.deepEqual([request!.source_site_id, request!.cluster_ids], [world.siteId, [7]]);
  const [incident] = request!.incidents;
  assert.deepEqual(incident!.target, { kind: 'host', value: '198.51.100.7' });
  const { started_at, detected_at, last_observed_at, state, revision } = incident!;
  assert.deepEqual(
    { started_at, detected_at, last_observed_at, state, revision },
    {
      started_at: new Date(start).toISOString(),
      detected_at: new Date(start + 2000).toISOString(),
      last_observed_at: new Date(start + 29_000).toISOString(),
      state: 'active',
      revision: 1,
    },
  );
  assert.doesNotMatch(JSON.stringify(request), /203\.0\.113/, 'no source crosses');
});

test('NET-4.1: of a site with over 100 clusters a request names the hundred with the cluster of its addresses', async () => {
  const more = Array.from({ length: 120 }, (_, i) => 1001 + i);
  for (const clusterId of more) await world.sites.mapCluster(systemActor, clusterId, world.siteId);
  const { pool } = world.database;
  await pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
     values (9, 9, 9, 1120, '198.51.100.7', '2026-01-01T00:00:00Z', true)`,
  );
  await say(flood(), flood({ target: { kind: 'host', value: '198.51.100.8' } }));
  assert.equal((await tick(await startFeed())).counts.applied, 2);
  const named = new Map(
    world.operations.postedIncidents.map(({ cluster_ids, incidents }) => [
      incidents[0]!.target.value,
      cluster_ids,
    ]),
  );
  assert.deepEqual(named.get('198.51.100.7'), more.slice(99));
  assert.deepEqual(named.get('198.51.100.8'), [7, ...more.slice(0, 99)]);
  await pool.query('delete from allocation_targets where allocation_id = 9');
  await pool.query('delete from site_clusters where cluster_id > 1000');
});

test('NET-4.2, NET-8.6: a tick takes at most 100 incidents, the next one the others, and what is unchanged is not sent again', async () => {
  for (let from = 0; from < 130; from += 65)
    await say(
      ...Array.from({ length: 65 }, (_, i) =>
        flood({ target: { kind: 'host', value: `198.51.100.${1 + from + i}` } }),
      ),
    );
  const feed = await startFeed();
  assert.equal((await tick(feed)).counts.visited, 100);
  const second = await tick(feed);
  assert.deepEqual([second.counts.visited, second.counts.applied], [30, 30]);
  assert.equal(new Set(sent().map(({ id }) => id)).size, 130);
  assert.deepEqual([(await tick(feed)).counts.visited, world.operations.postedIncidents.length], [0, 2]);
});

test('NET-4.2: a failed batch is sent by the next sweep, and a restart sends active incidents again with their id and times', async () => {
  await say(flood());
  const feed = await startFeed();
  world.operations.intercept = (_request, response, path) => {
    if (path !== '/protect/incidents/') return false;
    send(response, 500, {});
    return true;
  };
  assert.equal((await tick(feed)).counts.failed, 1);
  world.operations.intercept = () => false;
  assert.equal((await tick(feed)).counts.applied, 1);
  world.operations.incidentOutcome = () => 'unchanged';
  assert.equal((await tick(await startFeed())).counts.unchanged, 1);
  const [first, again] = sent();
  assert.deepEqual(again, first);
});

test('NET-4.2: an incident that has recovered is not sent again by a restart', async () => {
  await say(flood({ recoveredAtMs: start + 29_000 }));
  await tick(await startFeed());
  assert.equal(sent()[0]!.state, 'recovered');
  assert.equal((await tick(await startFeed())).counts.due, 0);
});

test('NET-2.9: outcomes are counted, a conflict shows as held back, and each change is sent again', async () => {
  const outcomes = new Map([
    ['198.51.100.1', 'unmatched' as const],
    ['198.51.100.2', 'identity_conflict' as const],
    ['198.51.100.3', 'terminal' as const],
  ]);
  world.operations.incidentOutcome = ({ target }) => outcomes.get(target.value)!;
  const floods = [...outcomes.keys()].map((value) => flood({ target: { kind: 'host', value } }));
  await say(...floods);
  const feed = await startFeed();
  const result = await tick(feed);
  const { unmatched, identity_conflict, terminal } = result.counts;
  assert.deepEqual([unmatched, identity_conflict, terminal], [1, 1, 1]);
  assert.deepEqual(
    (await world.feeds.listHeldBack()).map(({ feed: name, outcome }) => [name, outcome]),
    [['incidents', 'identity_conflict']],
  );
  assert.match(
    describeIncidents(result),
    /3 changed or active, 3 sent\n.*1 unmatched, 1 in conflict, 1 terminal/,
  );
  assert.equal((await tick(feed)).counts.visited, 0);
  await say({ ...floods[0]!, revision: 2, totals: { bytes: 5e6, packets: 1e5 } });
  await tick(feed);
  assert.deepEqual(
    sent()
      .slice(3)
      .map(({ target, revision }) => [target.value, revision]),
    [['198.51.100.1', 2]],
  );
  assert.equal((await feed.state())!.lastSuccessAtMs, null, 'nothing was acknowledged');
});

test('NET-4.6: a detected attack leaves for operations without any time of the loop passing, also from another process', async () => {
  // This clock never moves: what would wait for an interval, a poll or a pause waits for ever.
  const clock = createTestClock(Date.now());
  const feed = await startFeed({ clock });
  const parts = partsOfFeed(world, feed);
  const received = Promise.withResolvers<IncidentsRequest>();
  world.operations.intercept = (_request, _response, path, body) => {
    if (path === '/protect/incidents/') received.resolve(JSON.parse(body) as IncidentsRequest);
    return false;
  };
  for (const part of parts) await part.start();
  try {
    // The first run, with nothing to send, has ended: the loop waits.
    while (clock.waiting() === 0) await new Promise((done) => setImmediate(done));
    await say(flood());
    assert.equal((await received.promise).incidents[0]!.class, 'syn_flood');
  } finally {
    for (const part of parts.toReversed()) await part.stop();
  }
});

test('NET-4.6: SVC_OPS_DDOS_SYNC=0 leaves incidents and minutes to another process, at least 5 s apart', () => {
  const loopsOf = (environment: NodeJS.ProcessEnv) =>
    compose(readConfig({ SVC_LOG_LEVEL: 'error', ...environment })).loops.map(({ name }) => name);
  const names = ['loop sync_ops_ddos', 'loop sync_ops_ddos incidents', 'incident wake', 'target wake'];
  assert.deepEqual(
    names.filter((name) => loopsOf({}).includes(name)),
    names,
  );
  assert.deepEqual(
    names.filter((name) => loopsOf({ SVC_OPS_DDOS_SYNC: '0' }).includes(name)),
    [],
  );
  assert.throws(() => readConfig({ SVC_OPS_DDOS_SYNC_SECONDS: '4' }), /SVC_OPS_DDOS_SYNC_SECONDS/);
});

test('operations of before is told of a class that it does not know as another one, and of vectors what it takes', async () => {
  const details = {
    ...{ sourcePorts: [4096], protocols: [50], startedAtMs: start, lastObservedAtMs: start + 9000 },
    peak: { bps: 4e6, pps: 900 },
  };
  const vector = { class: 'protocol_flood' as const, packetsShare: 1, bytesShare: 1, ports: [] };
  await say(flood({ class: 'protocol_flood', vectors: [{ ...vector, details }] }));
  const told = async (capabilities: Record<string, true | number>) => {
    world.operations.capabilities = { ...allCapabilities, ...capabilities };
    await world.connection.check();
    await tick(await startFeed());
    const { class: name, vectors } = sent().at(-1)!;
    return { name, vectors };
  };
  const shares = { packets_share: 1, bytes_share: 1, ports: [] };
  assert.deepEqual(await told({}), { name: 'other', vectors: [{ class: 'other', ...shares }] });
  const wireDetails = {
    ...{ source_ports: [4096], protocols: [50], peak: { bps: 4e6, pps: 900 } },
    started_at: new Date(start).toISOString(),
    last_observed_at: new Date(start + 9000).toISOString(),
  };
  const named = {
    name: 'protocol_flood',
    vectors: [{ class: 'protocol_flood', ...shares, details: wireDetails }],
  };
  const takesDetails = { ddos_incident_vectors: true, ddos_incident_vectors_version: 1 } as const;
  assert.deepEqual(await told(takesDetails), named);
  // Whether the class is known and whether details are taken are told apart, in versions older and newer than ours.
  assert.deepEqual(await told({ ...takesDetails, ddos_incident_classes_version: 0 }), {
    name: 'other',
    vectors: [{ class: 'other', ...shares, details: wireDetails }],
  });
  assert.deepEqual(await told({ ...takesDetails, ddos_incident_classes_version: 9 }), named);
});

test('what a filter drops now is told to operations that takes it; of before it reads as filtered in the network', async () => {
  const none = { packets: 0, bytes: 0 };
  const filter = { matched: none, dropped: none, passed: none, isDropping: true, problem: '' };
  await say(flood({ filter: { ...filter, current: { bps: 12e6, pps: 24_870 } } }));
  const action = { kind: 'dropped', atMs: start, endedAtMs: null };
  await world.database.pool.query('update incidents set actions = $1', [JSON.stringify([action])]);
  const told = async (capabilities: Record<string, true | number>) => {
    world.operations.capabilities = { ...allCapabilities, ...capabilities };
    await world.connection.check();
    await tick(await startFeed());
    return sent().at(-1)!.actions;
  };
  const wire = { at: new Date(start).toISOString(), ended_at: null };
  assert.deepEqual(await told({}), [{ kind: 'filtered', ...wire }]);
  const takes = { ddos_incident_filter: true, ddos_incident_filter_version: 1 } as const;
  assert.deepEqual(await told(takes), [{ kind: 'dropped', ...wire, dropped_pps: 24_870 }]);
});

test('only a drill whose operator asked for it says that the customer is to be mailed, to operations that takes it', async () => {
  const addresses = ['198.51.100.7', '198.51.100.8', '198.51.100.9'];
  await world.database.pool.query(
    `insert into protection_drills (id, site_id, address, direction, class, pps, bps, starts_at, seconds, started_by, mails_customer)
     select gen_random_uuid(), $1, address::inet, 'inbound', 'syn_flood', 1, 1, to_timestamp($2::float8), 60, 'ada', address <> '198.51.100.8'
     from unnest($3::text[]) address`,
    [world.siteId, start / 1000, addresses],
  );
  const target = (value: string) => ({ target: { kind: 'host' as const, value } });
  // An attack on an address that has a drill too is no drill.
  const all = [
    flood({ drill: true }),
    flood({ drill: true, ...target('198.51.100.8') }),
    flood({ ...target('198.51.100.9') }),
  ];
  await say(...all);
  await tick(await startFeed());
  const asked = () =>
    new Map(sent().map(({ target: { value }, drill_is_mailed }) => [value, drill_is_mailed]));
  assert.deepEqual(
    addresses.map((address) => asked().get(address)),
    [undefined, undefined, undefined],
  );
  world.operations.capabilities = { ...allCapabilities, ddos_drill_mail: true, ddos_drill_mail_version: 1 };
  await world.connection.check();
  await tick(await startFeed());
  assert.deepEqual(
    addresses.map((address) => asked().get(address)),
    [true, undefined, undefined],
  );
});
