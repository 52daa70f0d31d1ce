// Slow: speaks BGP with real routers, whose timers take seconds.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { createTestClock } from '#common/clock/index.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { monitorAs, type Router, startRouter, until } from '../testing/gobgp.ts';
import { createStage, type Stage } from '../testing/stage.ts';

/** 65535:666 as one number. */
const blackhole = 4_294_902_426;

describe('with gobgpd', { skip: existsSync('/usr/bin/gobgpd') ? false : 'needs gobgpd' }, () => {
  const peers: Router['peer'][] = [];
  let router: Router;
  let stage: Stage;
  before(async () => {
    stage = await createStage({ bgp: { peers, ownAs: monitorAs, keepSeconds: 120 } });
  });
  after(() => stage[Symbol.asyncDispose]());
  // gobgpd refuses a neighbour for a while after its session ended, so each test has its own.
  beforeEach(async () => {
    await stage.reset();
    router = await startRouter();
    peers.splice(0, 1, router.peer);
  });
  afterEach(async () => {
    await stage.handOff.speaker.stop();
    await router[Symbol.asyncDispose]();
  });

  const rule = (part = {}) => ({
    kind: 'blackhole',
    prefixes: ['198.51.100.0/24', '2001:db8::/64'],
    peer: router.peer.name,
    nextHop4: '192.0.2.1',
    nextHop6: '100::1',
    ...part,
  });
  const work = () => stage.handOff.speaker.runOnce();
  const only = async () => (await stage.handOff.listActions(stage.world.siteId, null, 10))[0]!;
  const told = async () =>
    (await stage.world.database.pool.query('select actions from incidents')).rows.map(({ actions }) =>
      actions.map(({ kind }: { kind: string }) => kind),
    );
  /** Works until there are so many routes: a session may come up late, and what waits for that is due, because the clock stands. */
  const announced = (family: Parameters<Router['routes']>[0], count: number) =>
    until(async () => {
      await stage.attemptNow();
      await work();
      return (await router.routes(family)).length === count;
    });

  test('a blackhole has the community of RFC 7999 and the next hop, and is withdrawn after recovery and hold time', async () => {
    await stage.addRule(rule());
    const floods = [stage.attack(), stage.attack({ target: '2001:db8::7' })];
    await stage.say(...floods);
    await announced('ipv6', 1);
    await announced('ipv4', 1);
    const found = [...(await router.routes('ipv4')), ...(await router.routes('ipv6'))];
    assert.deepEqual(
      found.map(({ prefix, nextHop, communities }) => [prefix, nextHop, communities]),
      [
        ['198.51.100.7/32', '192.0.2.1', [blackhole]],
        ['2001:db8::7/128', '100::1', [blackhole]],
      ],
    );
    assert.deepEqual(await told(), [['blackholed'], ['blackholed']]);
    await work();
    const { name } = router.peer;
    const sessions = async () =>
      (await stage.handOff.describeSite(stage.world.siteId)).sessions.map(
        (one) => `${one.name} ${one.session} ${one.routes} ${one.problem}`,
      );
    assert.deepEqual(await sessions(), [`${name} established 2 null`]);
    await stage.later(46);
    assert.deepEqual(await sessions(), [`${name} unknown 0 null`], 'what was said long ago is not known now');
    await stage.later(-46);
    await stage.say(...floods.map(stage.recovered));
    await stage.later(299);
    await work();
    assert.equal((await router.routes('ipv4')).length, 1, 'the hold time');
    await stage.later(1);
    await announced('ipv4', 0);
    await announced('ipv6', 0);
    assert.deepEqual(await stage.states(), ['198.51.100.7 ended', '2001:db8::7 ended']);
  });

  test('filters drop what the vectors of an attack are made of, and nothing where a class has no filter', async () => {
    // Of an outbound attack the MAC has to be the server's.
    const mac = '02:00:00:00:00:07';
    const addresses = ['198.51.100.7', '198.51.100.8', '198.51.100.9', '198.51.100.10'];
    const nic = { id: 1, mac_address: mac, bridge: 'br0', vlan: null, addresses };
    const vm = { id: 42, cluster_id: 7, node: 'node-1', name: 'web', state: 'running' };
    const updated = new Date(stage.clock.nowMs()).toISOString();
    stage.world.operations.vms = [{ ...vm, updated_at: updated, interfaces: [nic] }];
    assert.deepEqual(await stage.world.inventory.syncNow(systemActor), { outcome: 'imported' });
    await stage.later(120);
    await stage.addRule(rule({ kind: 'flowspec', direction: 'both' }));
    await stage.addRule(rule({ name: 'Hole', prefixes: ['198.51.100.10/32'], direction: 'both' }));
    const vectors = [
      { class: 'amplification' as const, packetsShare: 0.6, bytesShare: 0.9, ports: [53, 123] },
      { class: 'syn_flood' as const, packetsShare: 0.3, bytesShare: 0.1, ports: [443] },
      { class: 'other' as const, packetsShare: 0.1, bytesShare: 0, ports: [] },
    ];
    const flood = stage.attack({ class: 'amplification', vectors });
    // Of an older sensor, which tells no IP protocol: nothing tells its packets from others.
    const unknown = stage.attack({ target: '198.51.100.9', class: 'protocol_flood' });
    // Its packets do not carry the address.
    const spoofed = stage.attack({
      ...{ target: '198.51.100.10', direction: 'outbound', isSpoofed: true },
      ...{ capture: 'br0', deviceKey: `br0|${mac}` },
    });
    await stage.say(flood, stage.attack({ target: '198.51.100.8', class: 'other' }), unknown, spoofed);
    await announced('ipv4-flowspec', 2);
    const found = await router.routes('ipv4-flowspec');
    assert.deepEqual(found.map(({ prefix }) => prefix).sort(), [
      '[destination: 198.51.100.7/32][protocol: ==tcp][tcp-flags: =S&!A]',
      '[destination: 198.51.100.7/32][protocol: ==udp][source-port: ==53 ==123]',
    ]);
    for (const { attributes } of found)
      assert.deepEqual(attributes.find(({ type }) => type === 16)?.value, [
        { type: 128, subtype: 6, as: 0, rate: 0 },
      ]);
    assert.deepEqual((await told()).flat(), ['filtered']);
    assert.deepEqual(await stage.states(), ['198.51.100.7 active']);
    assert.deepEqual(await router.routes('ipv4'), []);
    const later = [{ class: 'icmp_flood' as const, packetsShare: 1, bytesShare: 1, ports: [] }];
    await stage.say(stage.next(flood, { revision: 2, class: 'icmp_flood', vectors: later }));
    await announced('ipv4-flowspec', 1);
    assert.deepEqual(
      (await router.routes('ipv4-flowspec')).map(({ prefix }) => prefix),
      ['[destination: 198.51.100.7/32][protocol: ==icmp]'],
      'the filters follow the attack',
    );
    const { startedAtMs, lastObservedAtMs } = flood;
    const details = {
      ...{ sourcePorts: [], protocols: [50], startedAtMs, lastObservedAtMs, peak: { bps: 1, pps: 1 } },
    };
    const esp = [{ class: 'protocol_flood' as const, packetsShare: 1, bytesShare: 1, ports: [], details }];
    await stage.say(stage.next(flood, { revision: 3, class: 'protocol_flood', vectors: esp }));
    await until(async () => {
      await work();
      const [filter] = await router.routes('ipv4-flowspec');
      return filter?.prefix === '[destination: 198.51.100.7/32][protocol: ==50]';
    });
    await stage.switchTo((await only()).ruleId, 'off');
    await announced('ipv4-flowspec', 0);
  });

  test('a dry run opens no session and announces nothing', async () => {
    await stage.addRule(rule(), 'dry_run');
    await stage.say(stage.attack());
    await work();
    await stage.handOff.worker.drain();
    assert.equal(
      (await only()).output,
      `Dry run. Would announce a blackhole of 198.51.100.7/32 by 192.0.2.1 at ${router.peer.name}.`,
    );
    assert.equal(await router.isEstablished(), false);
    assert.equal((await stage.handOff.describeSite(stage.world.siteId)).sessions[0]!.session, 'unused');
  });

  test('a peer that was away is told again, and an attack in the meantime waits for it', async () => {
    await stage.addRule(rule());
    await stage.say(stage.attack());
    await announced('ipv4', 1);
    await router.stop();
    await until(async () => stage.log.some((line) => line.includes('no BGP session')));
    const second = stage.attack({ target: '198.51.100.8' });
    await stage.say(second);
    for (let i = 0; i < 7; i += 1) {
      await work();
      await stage.later(31);
      await stage.say(stage.next(second, { revision: i + 2 }));
    }
    const { state, lastError, address, attempts } = await only();
    assert.deepEqual([address, state], ['198.51.100.8', 'waiting']);
    assert.match(lastError!, /^(no connection with the peer|the peer closed)/);
    assert.ok(attempts >= 6, 'more than five');
    await work();
    const [peer] = (await stage.handOff.describeSite(stage.world.siteId)).sessions;
    assert.equal(peer!.session, 'down');
    assert.match(peer!.problem!, /^(no connection with the peer|the peer closed)/);
    await router.start();
    await until(async () => {
      await work();
      await stage.later(31);
      return (await router.routes('ipv4')).length === 2;
    });
  });

  test('a process that lost its lease ends its session by itself', async () => {
    const clock = createTestClock(0);
    const { speaker } = stage.create({ clock });
    await stage.addRule(rule());
    await stage.say(stage.attack());
    assert.equal(await speaker.runOnce(), true);
    await until(async () => (await router.routes('ipv4')).length === 1);
    await clock.advance(26_000);
    assert.equal(await router.isEstablished(), true);
    await clock.advance(2_000);
    await until(async () => !(await router.isEstablished()));
    await speaker.stop();
  });
});
