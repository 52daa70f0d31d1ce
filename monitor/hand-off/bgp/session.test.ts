import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { test } from 'node:test';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { attackClasses } from '#contracts/attack-classes.ts';
import type { Attack } from '../action.ts';
import { monitorAs, startRouter, until } from '../testing/gobgp.ts';
import { splitMessages } from './messages.ts';
import { type BgpPeer, parsePeers } from './peer.ts';
import { routesOf } from './route.ts';
import { createSession } from './session.ts';

const skip = existsSync('/usr/bin/gobgpd') ? false : 'needs gobgpd';

function open(peer: BgpPeer, ownAs: number = monitorAs) {
  const session = createSession({
    ...{ peer, ownAs, keepSeconds: 120, clock: systemClock, reporter: silentReporter },
  });
  session.trustUntil(Number.POSITIVE_INFINITY);
  session.connect();
  return session;
}

const attack: Attack = {
  ...{ incidentId: '', class: 'syn_flood', direction: 'inbound', pps: 1, bps: 1, startedAtMs: 0 },
  ...{ detectedAtMs: 0, vectors: [] },
};
const filtersOf = (address: string, part: Partial<Attack>) =>
  routesOf({ kind: 'flowspec', address, target: {}, attack: { ...attack, ...part } });

test('gobgpd reads the filter of every class as it is meant, in both families', { skip }, async () => {
  await using router = await startRouter();
  const session = open(router.peer);
  await session.settled();
  assert.equal(session.problem, null);
  const routes = ['198.51.100.7', '2001:db8::7'].flatMap((address) => [
    ...attackClasses.flatMap((name) =>
      filtersOf(address, {
        class: name,
        vectors: [{ class: name, ports: [53, 11_211], protocols: [50, 47] }],
      }),
    ),
    ...filtersOf(address, { direction: 'outbound', class: 'udp_flood' }),
  ]);
  assert.equal(await session.sync(routes), null);
  const expected = (to: string, icmp: string) =>
    [
      `[destination: ${to}][fragment: is-fragment+first-fragment+last-fragment]`,
      `[destination: ${to}][protocol: ==50 ==gre]`,
      `[destination: ${to}][protocol: ==${icmp}]`,
      `[destination: ${to}][protocol: ==tcp][tcp-flags: =A&!S]`,
      `[destination: ${to}][protocol: ==tcp][tcp-flags: =R]`,
      `[destination: ${to}][protocol: ==tcp][tcp-flags: =S&!A]`,
      `[destination: ${to}][protocol: ==tcp][tcp-flags: =SA]`,
      `[destination: ${to}][protocol: ==udp]`,
      `[destination: ${to}][protocol: ==udp][source-port: ==53 ==11211]`,
      `[source: ${to}][protocol: ==udp]`,
    ].sort();
  await until(async () => (await router.routes('ipv6-flowspec')).length === 10);
  const prefixes = async (family: 'ipv4-flowspec' | 'ipv6-flowspec') =>
    (await router.routes(family)).map(({ prefix }) => prefix).sort();
  assert.deepEqual(await prefixes('ipv4-flowspec'), expected('198.51.100.7/32', 'icmp'));
  assert.deepEqual(await prefixes('ipv6-flowspec'), expected('2001:db8::7/128/0', '58'));
  assert.equal(await session.sync(routes.slice(0, 1)), null);
  await until(async () => (await router.routes('ipv6-flowspec')).length === 0);
  assert.equal((await prefixes('ipv4-flowspec')).length, 1);
  session.close();
});

test('what a router does not accept is said: its AS number, ours, a family that it does not have', {
  skip,
}, async () => {
  await using first = await startRouter();
  const wrongPeer = open({ ...first.peer, as: 64_999 });
  await wrongPeer.settled();
  assert.equal(wrongPeer.problem, "the peer's AS number is 64512, not 64999");
  await using second = await startRouter();
  const wrongOwn = open(second.peer, 65_000);
  await wrongOwn.settled();
  assert.match(wrongOwn.problem!, /^the peer ended the session: wrong AS number \(2\/2\)$/);
  await using third = await startRouter(['ipv4-unicast']);
  const session = open(third.peer);
  await session.settled();
  const refused = await session.sync(filtersOf('198.51.100.7', {}));
  assert.equal(refused, 'the peer takes no routes of IPv4 Flowspec');
  session.close();
});

test('a peer that says something else than BGP, or nothing, makes no session', async () => {
  const answers: ((socket: Socket) => void)[] = [
    (socket) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'),
    (socket) => void socket.write(Buffer.alloc(4096, 0xff)),
    // An OPEN whose parameters are longer than itself.
    (socket) =>
      void socket.write(
        Buffer.concat([Buffer.alloc(16, 0xff), Buffer.from([0, 29, 1, 4, 1, 1, 0, 90, 1, 1, 1, 1, 200])]),
      ),
    (socket) => void socket.destroy(),
  ];
  for (const answer of answers) {
    const server = createServer((socket) => {
      socket.on('error', () => {});
      answer(socket);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const session = open({ name: 'x', host: '127.0.0.1', port, as: 64_512 });
    await session.settled();
    assert.notEqual(session.problem, null);
    assert.notEqual(await session.sync([]), null);
    session.close();
    server.close();
  }
});

test('messages are put together from any pieces', () => {
  const keepalive = Buffer.concat([Buffer.alloc(16, 0xff), Buffer.from([0, 19, 4])]);
  const all = Buffer.concat([keepalive, keepalive, keepalive]);
  for (let cut = 0; cut <= all.length; cut += 1) {
    const first = splitMessages(all.subarray(0, cut));
    const second = splitMessages(Buffer.concat([first.rest, all.subarray(cut)]));
    assert.equal(first.messages.length + second.messages.length, 3);
    assert.equal(second.rest.length, 0);
  }
});

test('peers are read from the settings, and what is no peer is named', () => {
  assert.deepEqual(
    parsePeers('64512@127.0.0.1:1790, 4200000000@[2001:db8::1]').map(({ name, host, port }) => [
      name,
      host,
      port,
    ]),
    [
      ['64512@127.0.0.1:1790', '127.0.0.1', 1790],
      ['4200000000@[2001:db8::1]:179', '2001:db8::1', 179],
    ],
  );
  assert.deepEqual(parsePeers(''), []);
  for (const text of [
    '127.0.0.1',
    '0@127.0.0.1',
    '64512@router',
    '64512@127.0.0.1:0',
    '64512@300.0.0.1',
    '5000000000@127.0.0.1',
  ])
    assert.throws(() => parsePeers(text), /must be like/, text);
});
