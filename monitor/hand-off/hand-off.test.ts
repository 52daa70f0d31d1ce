import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, beforeEach, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import type { IncidentObservation } from '#contracts/sensor-api/detection.ts';
import { packetBytesMax } from '#contracts/sensor-api/filter.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { createFilterSection } from './index.ts';
import { createStage, ruleInput, type Stage } from './testing/stage.ts';

let stage: Stage;
before(async () => {
  stage = await createStage();
});
after(() => stage[Symbol.asyncDispose]());
beforeEach(() => stage.reset());

const drain = () => stage.handOff.worker.drain();
const actions = () => stage.handOff.listActions(stage.world.siteId, null, 100);
const told = async () => {
  const { rows } = await stage.world.database.pool.query(
    'select revision, actions from incidents order by id',
  );
  return rows as { revision: number; actions: { kind: string; endedAtMs: number | null }[] }[];
};

test('a command is started with the arguments of FastNetMon and JSON, once for the attack and once for its end after the hold time', async () => {
  await stage.addRule();
  const flood = stage.attack();
  await stage.say(flood);
  await drain();
  const [started] = await stage.started();
  assert.deepEqual(started!.args, ['198.51.100.7', 'incoming', '25000', 'ban']);
  const { action, address, incident, rule } = started!.input as Record<string, Record<string, unknown>>;
  assert.deepEqual(
    [action, address, incident!.class, rule!.name],
    ['ban', '198.51.100.7', 'syn_flood', 'Block'],
  );
  const [{ output, state, lastError }] = (await actions()) as [Awaited<ReturnType<typeof actions>>[0]];
  assert.deepEqual([output, state, lastError], ['did ban\n', 'active', null]);
  assert.deepEqual(
    (await told())[0]!.actions.map(({ kind, endedAtMs }) => [kind, endedAtMs]),
    [['command', null]],
  );

  await stage.later(20);
  await stage.say(stage.next(flood));
  await drain();
  assert.equal((await stage.started()).length, 1, 'a heartbeat starts nothing');
  await stage.say(stage.recovered({ ...flood, revision: 2 }));
  const { revision } = (await told())[0]!;
  await stage.later(299);
  await drain();
  assert.deepEqual(await stage.states(), ['198.51.100.7 active'], 'the hold time');
  await stage.later(1);
  await drain();
  assert.deepEqual((await stage.started())[1]!.args, ['198.51.100.7', 'incoming', '25000', 'unban']);
  assert.deepEqual(await stage.states(), ['198.51.100.7 ended']);
  const [after] = await told();
  assert.equal(after!.revision, revision + 1, 'operations is told of the end');
  assert.equal(after!.actions[0]!.endedAtMs, stage.clock.nowMs());
});

test('a rule is off at first, and goes to on by a dry run only', async () => {
  const { siteId } = stage.world;
  const id = await stage.addRule({}, 'off');
  await assert.rejects(stage.switchTo(id, 'on'), (error) => hasCode(error, 'hand_off.invalid'));
  await stage.say(stage.attack());
  await drain();
  assert.deepEqual(await stage.states(), []);
  await stage.switchTo(id, 'dry_run');
  await stage.switchTo(id, 'on');
  const [rule] = (await stage.handOff.describeSite(siteId)).rules;
  assert.equal(rule!.mode, 'on');
  await assert.rejects(
    stage.handOff.switchRule(systemActor, siteId, id, 'off', rule!.revision - 1),
    (error) => hasCode(error, 'hand_off.changed'),
  );
});

test('a dry run starts nothing, tells operations nothing, and says what it would have done', async () => {
  await stage.addRule({}, 'dry_run');
  const flood = stage.attack();
  await stage.say(flood);
  await drain();
  assert.deepEqual(await stage.states(), ['198.51.100.7 active (dry run)']);
  const [action] = await actions();
  assert.equal(action!.output, 'Dry run. Would run block.sh 198.51.100.7 incoming 25000 ban.');
  await stage.say(stage.recovered(flood));
  await stage.later(300);
  await drain();
  assert.deepEqual(await stage.states(), ['198.51.100.7 ended (dry run)']);
  assert.deepEqual(await stage.started(), []);
  assert.deepEqual((await told())[0]!.actions, []);
});

test('only attacks on addresses of the list, strong enough, in the direction, and of the rule’s site are acted on', async () => {
  const other = await stage.world.sites.create(systemActor, 'Other site');
  await stage.addRule({ name: 'other', prefixes: ['198.51.100.0/24', '203.0.113.0/24'] }, 'on', other.id);
  await stage.addRule({ prefixes: ['198.51.100.0/28', '2001:db8::/64'], minPps: '20k', minBps: '1G' });
  await stage.say(
    stage.attack({ target: '198.51.100.7' }),
    stage.attack({ target: '198.51.100.16' }),
    stage.attack({ target: '198.51.100.1', pps: 19_999 }),
    stage.attack({ target: '198.51.100.2', pps: 10, bps: 1e9 }),
    stage.attack({ target: '198.51.100.3', severity: 'info' }),
    stage.attack({ target: '198.51.100.4', drill: true }),
    stage.attack({ target: { kind: 'prefix', value: '198.51.100.0/28' } }),
    stage.attack({ target: { kind: 'capture', value: 'eth0' } }),
    stage.attack({ target: '2001:db8::1' }),
    stage.attack({ target: '2001:db8:0:1::1' }),
  );
  await drain();
  const started = (await stage.started()).map(({ args }) => args[0]).sort();
  assert.deepEqual(started, ['198.51.100.2', '198.51.100.7', '2001:db8::1']);
  assert.deepEqual(await stage.handOff.listActions(other.id, null, 10), [], 'no rule of another site');
});

test('a GRE flood that an earlier version stored is a protocol flood, and an announced filter stays that of GRE', async () => {
  await stage.addRule();
  await stage.say(stage.attack());
  await drain();
  const { pool } = stage.world.database;
  const older = '{"class": "gre_flood", "vectors": [{"class": "gre_flood", "ports": []}]}';
  await pool.query('update incidents set class = $1, measured = measured || $2', ['gre_flood', older]);
  await pool.query('update incident_observations set said = said || $1', [older]);
  await pool.query('update hand_off_actions set attack = attack || $1', [older]);
  const sql = readFileSync(new URL('../migrations/0650-rename-gre-floods.sql', import.meta.url), 'utf8');
  await pool.query(sql);
  const { rows } = await pool.query(`
    select i.class, i.measured -> 'vectors' as vectors, o.said ->> 'class' as said, a.attack
    from incidents i, incident_observations o, hand_off_actions a`);
  assert.equal(rows.length, 1);
  const vector = { class: 'protocol_flood', ports: [] };
  const { class: name, vectors, said, attack } = rows[0];
  assert.deepEqual({ name, vectors, said }, { name: vector.class, vectors: [vector], said: vector.class });
  assert.deepEqual([attack.class, attack.protocols], ['protocol_flood', undefined]);
  assert.deepEqual(attack.vectors, [{ ...vector, protocols: [47] }]);
});

test('a site has actions for at most so many addresses at once; others wait, and begin when there is room', async () => {
  await stage.handOff.setLimit(systemActor, stage.world.siteId, '2', 0);
  await stage.addRule();
  await stage.addRule({ name: 'Second' });
  const floods = [1, 2, 3].map((n) => stage.attack({ target: `198.51.100.${n}` }));
  for (const flood of floods) await stage.say(flood);
  await drain();
  assert.equal((await stage.started()).length, 4, 'two rules for each of two addresses');
  const waiting = (await actions()).filter(({ state }) => state === 'waiting');
  assert.deepEqual(
    waiting.map(({ address, lastError }) => [address, lastError]),
    Array(2).fill(['198.51.100.3', 'waits: the site has actions for its maximum of 2 addresses']),
  );
  await stage.say(stage.recovered(floods[0]!), stage.next(floods[1]!), stage.next(floods[2]!));
  await stage.later(300);
  await drain();
  assert.deepEqual(
    (await actions())
      .filter(({ state }) => state === 'active')
      .map(({ address }) => address)
      .sort(),
    ['198.51.100.2', '198.51.100.2', '198.51.100.3', '198.51.100.3'],
  );
});

test('two processes carry out each step once, and what a killed one left is taken up by another', async () => {
  await stage.addRule();
  await stage.say(...Array.from({ length: 8 }, (_, n) => stage.attack({ target: `198.51.100.${n + 1}` })));
  const second = stage.create();
  await Promise.all([drain(), second.worker.drain(), drain(), second.worker.drain()]);
  const bans = (await stage.started()).map(({ args }) => args[0]).sort();
  assert.deepEqual(
    bans,
    Array.from({ length: 8 }, (_, n) => `198.51.100.${n + 1}`),
  );
  // A process that was killed during the end of an action: its claim lasts for a minute, its step is not recorded.
  await stage.world.database.pool.query(
    `update hand_off_actions set state = 'ending', term = term + 1, claimed_until = svc_now() + interval '60 seconds'
     where address = '198.51.100.3'`,
  );
  await drain();
  assert.equal((await stage.started()).length, 8);
  await stage.later(61);
  await drain();
  assert.deepEqual((await stage.started())[8]!.args.slice(3), ['unban']);
});

/** Lists a server, and gives what a sensor says of its attack on others. */
async function placeSender() {
  const mac = '02:00:00:00:00:07';
  const nic = { id: 1, mac_address: mac, bridge: 'br0', vlan: null, addresses: ['198.51.100.7'] };
  const vm = { id: 42, cluster_id: 7, node: 'node-1', name: 'web', state: 'running' };
  const listed = { ...vm, updated_at: new Date(stage.clock.nowMs()).toISOString(), interfaces: [nic] };
  stage.world.operations.vms = [listed];
  assert.deepEqual(await stage.world.inventory.syncNow(systemActor), { outcome: 'imported' });
  await stage.later(120);
  return stage.attack({ direction: 'outbound', capture: 'br0', deviceKey: `br0|${mac}` });
}

test('attacks on and by one address are one action, which ends when both have recovered', async () => {
  const outbound = await placeSender();
  await stage.addRule({ direction: 'both' });
  const inbound = stage.attack();
  await stage.say(inbound);
  await drain();
  await stage.say(outbound);
  assert.deepEqual(
    (await told()).map(({ actions: [one] }) => one?.kind),
    ['command', 'command'],
    'operations is told with both',
  );
  await stage.say(stage.recovered(inbound));
  await stage.later(300);
  await drain();
  assert.deepEqual(await stage.states(), ['198.51.100.7 active']);
  await stage.say(stage.recovered(outbound));
  await stage.later(300);
  await drain();
  assert.deepEqual(
    (await stage.started()).map(({ args }) => args[3]),
    ['ban', 'unban'],
  );
});

test('the same attack that begins again during the hold time keeps its action', async () => {
  await stage.addRule();
  const flood = stage.attack();
  await stage.say(flood);
  await drain();
  await stage.say(stage.recovered(flood));
  await stage.later(200);
  await stage.say(stage.attack({ startedAtMs: stage.clock.nowMs() - 4000 }));
  await stage.later(200);
  await drain();
  assert.deepEqual(await stage.states(), ['198.51.100.7 active']);
  assert.equal((await stage.started()).length, 1);
});

test('an action that an operator ends is not begun again for this attack; a rule that is switched off or removed ends its own', async () => {
  const { siteId } = stage.world;
  const id = await stage.addRule();
  const flood = stage.attack();
  await stage.say(flood);
  await drain();
  const [action] = await actions();
  assert.equal(await stage.handOff.endAction(systemActor, siteId + 1, action!.id).catch(() => false), false);
  assert.equal(await stage.handOff.endAction(systemActor, siteId, action!.id), true);
  await stage.later(10);
  await stage.say(stage.next(flood));
  await drain();
  assert.deepEqual(await stage.states(), ['198.51.100.7 ended']);
  await stage.say(stage.attack({ target: '198.51.100.8' }));
  await drain();
  await stage.switchTo(id, 'off');
  await drain();
  assert.deepEqual(await stage.states(), ['198.51.100.7 ended', '198.51.100.8 ended']);
  await stage.switchTo(id, 'dry_run');
  await stage.switchTo(id, 'on');
  await stage.say(stage.attack({ target: '198.51.100.9' }));
  await drain();
  const [rule] = (await stage.handOff.describeSite(siteId)).rules;
  await stage.handOff.removeRule(systemActor, siteId, id, rule!.revision);
  await drain();
  const steps = (await stage.started()).map(({ args }) => `${args[0]} ${args[3]}`);
  assert.deepEqual(steps.slice(-2), ['198.51.100.9 ban', '198.51.100.9 unban']);
  assert.deepEqual((await stage.handOff.describeSite(siteId)).rules, []);
});

test('wrong settings are refused with each wrong field, and nothing is stored', async () => {
  const { siteId } = stage.world;
  const fieldsOf = async (part: Parameters<typeof ruleInput>[0]) => {
    const error = await stage.handOff.addRule(systemActor, siteId, ruleInput(part)).then(
      () => assert.fail('accepted'),
      (thrown) => thrown,
    );
    return Object.keys(error.details.fields).sort();
  };
  assert.deepEqual(await fieldsOf({ name: ' ', prefixes: [], holdSeconds: '59' }), [
    'hold_seconds',
    'name',
    'prefixes',
  ]);
  assert.deepEqual(await fieldsOf({ prefixes: ['0.0.0.0/0'] }), ['prefixes']);
  assert.deepEqual(await fieldsOf({ minPps: '-1', minBps: 'x' }), ['min_bps', 'min_pps']);
  for (const command of ['../block.sh', '/bin/sh', '.log', 'block.sh;id', '', 'missing'])
    assert.deepEqual(await fieldsOf({ command }), ['command'], command);
  assert.deepEqual(await fieldsOf({ kind: 'webhook', url: 'file:///etc/passwd' }), ['url']);
  assert.deepEqual(await fieldsOf({ kind: 'mail' }), ['kind']);
  assert.deepEqual((await stage.handOff.describeSite(siteId)).rules, []);
  const viewer = { kind: 'person', id: 1, role: 'viewer' } as const;
  await assert.rejects(stage.handOff.addRule(viewer, siteId, ruleInput()), (error) =>
    hasCode(error, 'operators.read_only'),
  );
});

test('by itself a rule acts on servers of the reporting node alone; on others an operator starts it, on hosts it never acts', async () => {
  const { pool } = stage.world.database;
  const { siteId } = stage.world;
  await stage.addRule({ prefixes: ['198.51.100.0/24', '192.0.2.0/24'] });
  await pool.query(
    `insert into host_inventories (sensor_id, observed_at, interfaces, interfaces_left_out, neighbours, neighbours_left_out)
     values ($1, svc_now(), $2, 0, 0, 0)`,
    [stage.sensor.id, JSON.stringify([{ name: 'br0', addresses: ['192.0.2.1/24', '198.51.100.7/32'] }])],
  );
  const passing = stage.attack({ target: '192.0.2.20' });
  await stage.say(
    stage.attack({ target: '198.51.100.7' }),
    stage.attack({ target: '192.0.2.1' }),
    stage.attack({ target: '192.0.2.30' }),
    stage.attack({ target: '::ffff:198.51.100.8' }),
    passing,
  );
  await drain();
  const startedOn = async () => (await stage.started()).map(({ args }) => args[0]).sort();
  assert.deepEqual(await startedOn(), ['198.51.100.7', '198.51.100.8']);
  const waiting = (await actions()).filter(({ needsApproval }) => needsApproval);
  assert.deepEqual(waiting.map(({ address }) => address).sort(), ['192.0.2.20', '192.0.2.30']);
  assert.match(waiting[0]!.lastError!, /no server on the node that reports the attack has this address/);
  const unknown = waiting.find(({ address }) => address === '192.0.2.30')!;
  assert.equal(await stage.handOff.approveAction(systemActor, siteId, unknown.id), true);
  assert.equal(await stage.handOff.approveAction(systemActor, siteId, unknown.id), false, 'it has started');
  await drain();
  assert.deepEqual(await startedOn(), ['192.0.2.30', '198.51.100.7', '198.51.100.8']);
  // A dry run shows that it would wait.
  await stage.addRule({ name: 'Rehearsal', prefixes: ['192.0.2.0/24'] }, 'dry_run');
  await stage.say(stage.attack({ target: '192.0.2.40' }));
  await drain();
  const rehearsed = (await actions()).find(({ isDryRun }) => isDryRun)!;
  assert.deepEqual([rehearsed.needsApproval, rehearsed.output], [true, '']);
  // An attack that ends before leaves nothing to start.
  await stage.say(stage.recovered(passing));
  await drain();
  assert.equal(
    (await stage.states()).find((state) => state.startsWith('192.0.2.20')),
    '192.0.2.20 ended',
  );
  await pool.query('delete from host_inventories');
});

const addFilter = (part: Parameters<typeof ruleInput>[0] = {}, mode: 'on' | 'dry_run' = 'on') =>
  stage.addRule({ kind: 'filter', name: 'Filter', countSeconds: '60', ...part }, mode);
const readFilterPlan = () => {
  const { db } = stage.world;
  return createFilterSection({ db, reader: db }).read({ siteId: stage.world.siteId, node: null });
};
const planRules = async () => (await readFilterPlan()).filter_rules!;
const toldActions = async () => {
  const { rows: found } = await stage.world.database.pool.query('select actions from incidents order by id');
  return found.flatMap(
    ({ actions }) => actions as { kind: string; atMs: number; endedAtMs: number | null }[],
  );
};
const time = (ms: number) => new Date(ms).toISOString();

test('a filter begins by counting, drops after the time of its rule, and ends with the attack and the hold time', async () => {
  await addFilter({ lengthMin: '40', lengthMax: '100' });
  const flood = stage.attack();
  await stage.say(flood);
  await drain();
  const beganMs = stage.clock.nowMs();
  assert.deepEqual(await planRules(), [
    {
      ...{ target: '198.51.100.7', class: 'syn_flood', began_at: time(flood.startedAtMs) },
      match: {
        ...{ protocols: [6], source_ports: [], flags_set: 2, flags_clear: 16, only_fragments: false },
        ...{ length_min: 40, length_max: 100 },
      },
      ...{ drops_at: time(beganMs + 60_000), ends_at: time(beganMs + 86_400_000) },
    },
  ]);
  assert.deepEqual(await toldActions(), [], 'nothing is dropped yet');
  await stage.later(61);
  const second = stage.next(flood);
  await stage.say(second);
  const dropped = { kind: 'dropped', atMs: beganMs + 60_000, endedAtMs: null };
  assert.deepEqual(await toldActions(), [dropped]);
  await stage.say(stage.recovered(second));
  await stage.later(299);
  await drain();
  assert.equal((await planRules()).length, 1, 'the hold time');
  await stage.later(1);
  await drain();
  assert.deepEqual(await planRules(), []);
  assert.deepEqual(await toldActions(), [{ ...dropped, endedAtMs: stage.clock.nowMs() }]);
});

test('without a time an operator lets a filter drop, once, with an entry in the audit trail; a dry run never drops', async () => {
  await addFilter({ countSeconds: '' });
  await addFilter({ name: 'Rehearsal' }, 'dry_run');
  await stage.say(stage.attack());
  await drain();
  assert.deepEqual(
    (await planRules()).map((rule) => rule.drops_at),
    [null, null],
  );
  const actions = await stage.handOff.listActions(stage.world.siteId, null, 10);
  const [rehearsal, filter] = ['Rehearsal', 'Filter'].map(
    (name) => actions.find((one) => one.ruleName === name)!,
  );
  const drop = (id: number, siteId = stage.world.siteId) => stage.handOff.dropAction(systemActor, siteId, id);
  assert.equal(await drop(rehearsal!.id), false);
  assert.equal(await drop(filter!.id, stage.world.siteId + 1).catch(() => false), false);
  assert.equal(await drop(filter!.id), true);
  assert.equal(await drop(filter!.id), false, 'it drops already');
  const nowMs = stage.clock.nowMs();
  assert.deepEqual(
    (await planRules()).map((rule) => rule.drops_at),
    [time(nowMs), null],
  );
  assert.deepEqual(await toldActions(), [{ kind: 'dropped', atMs: nowMs, endedAtMs: null }]);
  const { rows } = await stage.world.database.pool.query(
    "select subject_name from audit_entries where operation = 'hand_off.drop'",
  );
  assert.equal(rows.length, 1);
});

test('a filter ends at its time limit while the attack goes on, and does not begin again for it; one that only counted is not told', async () => {
  await addFilter({ maxSeconds: '120' });
  const flood = stage.attack();
  await stage.say(flood);
  await drain();
  await stage.later(30);
  const [action] = await stage.handOff.listActions(stage.world.siteId, null, 1);
  await stage.handOff.endAction(systemActor, stage.world.siteId, action!.id);
  await drain();
  assert.deepEqual(await toldActions(), []);
  const other = stage.attack({ target: '198.51.100.8' });
  await stage.say(other);
  await drain();
  await stage.later(120);
  await drain();
  assert.deepEqual(await planRules(), []);
  await stage.say(stage.next(other));
  await drain();
  assert.deepEqual(await stage.states(), ['198.51.100.7 ended', '198.51.100.8 ended']);
  const [last] = await stage.handOff.listActions(stage.world.siteId, null, 1);
  assert.equal(last!.stoppedBy, 'the time limit of its rule');
});

test('a filter follows the vectors of its attack, and is for attacks that can be told from other traffic alone', async () => {
  await addFilter({ countSeconds: '0' });
  const flood = stage.attack();
  await stage.say(flood, stage.attack({ target: '198.51.100.9', class: 'high_volume' }));
  await drain();
  const vector = { class: 'amplification', packetsShare: 1, bytesShare: 1, ports: [123, 53] } as const;
  const part: Partial<IncidentObservation> = {
    class: 'amplification',
    vectors: [{ ...vector, ports: [123, 53] }],
  };
  await stage.say({ ...stage.next(flood), ...part });
  assert.deepEqual(
    (await planRules()).map(({ target, class: name, match }) => [
      target,
      name,
      match.protocols,
      match.source_ports,
    ]),
    [['198.51.100.7', 'amplification', [17], [123, 53]]],
  );
  assert.equal((await planRules())[0]!.match.length_max, packetBytesMax);
});

test('what a server’s attack on others is dropped by stands apart in the plan, and is told as dropped', async () => {
  const outbound = await placeSender();
  await addFilter({ countSeconds: '0', direction: 'outbound' });
  await stage.say(stage.attack({ target: '198.51.100.8' }), outbound);
  await drain();
  const plan = await readFilterPlan();
  assert.deepEqual(
    [plan.filter_rules, plan.outbound_filter_rules].map((rules) => rules!.map(({ target }) => target)),
    [[], ['198.51.100.7']],
  );
  assert.deepEqual(
    (
      await stage.world.database.pool.query('select direction, actions from incidents order by direction')
    ).rows.map(({ direction, actions }) => [direction, actions.map(({ kind }: { kind: string }) => kind)]),
    [
      ['inbound', []],
      ['outbound', ['dropped']],
    ],
  );
});

test('settings of a filter: one direction, whole numbers within their bounds', async () => {
  const fieldsOf = async (part: Parameters<typeof ruleInput>[0]) => {
    const error = await stage.handOff
      .addRule(systemActor, stage.world.siteId, ruleInput({ kind: 'filter', ...part }))
      .then(
        () => assert.fail('accepted'),
        (thrown) => thrown,
      );
    return Object.keys(error.details.fields).sort();
  };
  assert.deepEqual(await fieldsOf({ direction: 'both' }), ['direction']);
  assert.deepEqual(
    await fieldsOf({ countSeconds: '-1', maxSeconds: '59', lengthMin: '100', lengthMax: '99' }),
    ['count_seconds', 'length_max', 'max_seconds'],
  );
});

test('what filters of several uplinks did against an incident adds up', async () => {
  const filterOf = (packets: number, problem = '') => ({
    matched: { packets, bytes: packets * 60 },
    dropped: { packets, bytes: packets * 60 },
    passed: { packets: 1, bytes: 60 },
    ...{ current: { bps: 480, pps: 1 }, isDropping: problem === '', problem },
  });
  const flood = stage.attack();
  await stage.say(
    { ...flood, filter: filterOf(10) },
    { ...stage.attack({ capture: 'eth1' }), filter: filterOf(5, 'why') },
  );
  const { rows: found } = await stage.world.database.pool.query(
    "select measured -> 'filter' as filter from incidents",
  );
  assert.deepEqual(
    found.map(({ filter }) => filter),
    [
      {
        ...{ matched: { packets: 15, bytes: 900 }, dropped: { packets: 15, bytes: 900 } },
        ...{
          passed: { packets: 2, bytes: 120 },
          current: { bps: 960, pps: 2 },
          isDropping: true,
          problem: 'why',
        },
      },
    ],
  );
});
