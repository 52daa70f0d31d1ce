/** What an endpoint's address may be, and that a name which changes its mind reaches nothing of ours (M1). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createSilentServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { type Address, isAllowedAddress, parseEndpointUrl, postDelivery } from './index.ts';

const strict = { allowPrivate: false };
let port = 0;
let connections = 0;
const inside = createServer((_request, response) => response.end('inside'));
inside.on('connection', () => {
  connections += 1;
});
before(async () => {
  await new Promise<void>((ready) => inside.listen(0, '127.0.0.1', ready));
  port = (inside.address() as AddressInfo).port;
});
after(() => inside.close());

const send = (url: string, answers: Address[][], rules = strict) => {
  const resolve = async () => answers.shift() ?? [];
  return postDelivery(url, { body: '{}' }, { rules, resolve, signal: new AbortController().signal });
};
const v4 = (address: string): Address => ({ address, family: 4 });

test('no address inside our network may be one, however it is written', () => {
  const hosts = [
    '127.0.0.1',
    '127.1',
    '0x7f000001',
    '2130706433',
    '017700000001',
    '0',
    '10.0.0.1',
    '172.16.5.5',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '192.0.2.7',
    '198.18.0.1',
    '224.0.0.1',
    '255.255.255.255',
    '[::]',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[fe80::1]',
    '[fc00::1]',
    '[fd00:ec2::254]',
    '[2001:db8::1]',
    '[2002:7f00:1::]',
    '[ff02::1]',
    '[100::1]',
    '①②⑦.⓪.⓪.①',
  ];
  for (const host of hosts)
    assert.throws(() => parseEndpointUrl(`https://${host}/`, strict), { code: 'webhooks.invalid' }, host);
  const others = [
    'http://example.com/',
    'file:///etc/passwd',
    'gopher://example.com/',
    'https://user:pass@example.com/',
    'https://user@example.com/',
    'https://example.com:22/',
    'https://example.com:80/',
    'javascript:alert(1)',
    'https://',
    '//example.com/',
    `https://example.com/${'a'.repeat(600)}`,
  ];
  for (const url of others)
    assert.throws(() => parseEndpointUrl(url, strict), { code: 'webhooks.invalid' }, url);
  for (const url of [
    'https://example.com/hook',
    'https://example.com:8443/',
    'https://93.184.216.34/',
    'https://[2606:2800:220:1::1]/',
  ])
    assert.ok(parseEndpointUrl(url, strict));
});

test('a name is connected to only at the addresses that were looked at', async () => {
  const before = connections;
  for (const answers of [
    [[v4('127.0.0.1')]],
    [[v4('93.184.216.34'), v4('127.0.0.1')]],
    [[v4('169.254.169.254')]],
    [[{ address: '::1', family: 6 }]],
    [[{ address: '::ffff:127.0.0.1', family: 6 }]],
  ]) {
    const outcome = await send(`https://rebind.test:${port}/`, answers);
    assert.equal(outcome.error, 'the name leads to an address that is not on the public internet');
  }
  assert.equal(connections, before, 'nothing inside was connected to');
  // Pinned: a second look at the name, which would lead elsewhere, is never taken.
  const answers = [[v4('127.0.0.1')], [v4('10.255.255.1')]];
  const outcome = await send(`http://pinned.test:${port}/`, answers, { allowPrivate: true });
  assert.deepEqual(outcome, { statusCode: 200, error: null });
  assert.equal(answers.length, 1);
});

test('a name that resolves to nothing, and one that never resolves, are failures in words of ours', async () => {
  assert.equal((await send('https://nowhere.test/', [[]])).error, 'the name does not resolve');
  const failure = Object.assign(new Error('queryA ENOTFOUND secret.internal'), { code: 'ENOTFOUND' });
  const resolve = () => Promise.reject(failure);
  const signal = new AbortController().signal;
  const outcome = await postDelivery('https://x.test/', { body: '{}' }, { rules: strict, resolve, signal });
  assert.deepEqual(outcome, { statusCode: null, error: 'the name does not resolve' });
});

test('what is allowed in a lab is allowed there alone', () => {
  assert.equal(isAllowedAddress('127.0.0.1', { allowPrivate: true }), true);
  assert.equal(isAllowedAddress('127.0.0.1', strict), false);
  assert.equal(isAllowedAddress('not an address', strict), false);
});

test('connecting, TLS included, has four seconds; a receiver that then thinks has more', async (t) => {
  const sockets: Socket[] = [];
  // It takes the connection and says nothing, so TLS never stands.
  const silent = createSilentServer((socket) => void sockets.push(socket.on('error', () => {})));
  await new Promise<void>((ready) => silent.listen(0, '127.0.0.1', ready));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port: silentPort } = silent.address() as AddressInfo;
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const lab = { allowPrivate: true };
  const deliver = async (url: string) => {
    let outcome: Awaited<ReturnType<typeof send>> | null = null;
    const done = send(url, [[v4('127.0.0.1')]], lab).then((one) => {
      outcome = one;
    });
    await once(silent, 'connection');
    return { done, outcome: () => outcome };
  };
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  const secure = await deliver(`https://silent.test:${silentPort}/`);
  t.mock.timers.tick(3_999);
  await turn();
  assert.equal(secure.outcome(), null);
  t.mock.timers.tick(1);
  // Not awaited: the limit of a whole delivery, which no clock of the test moves, would end it with the same words.
  for (let turns = 0; turns < 1_000 && secure.outcome() === null; turns += 1) await turn();
  assert.deepEqual(secure.outcome(), { statusCode: null, error: 'the receiver did not answer in time' });

  const plain = await deliver(`http://silent.test:${silentPort}/`);
  await once(sockets.at(-1)!, 'data');
  t.mock.timers.tick(10_000);
  await turn();
  assert.equal(plain.outcome(), null, 'it is connected: how long it may think is another limit');
  sockets.at(-1)!.end('HTTP/1.1 204 No Content\r\n\r\n');
  await plain.done;
  assert.deepEqual(plain.outcome(), { statusCode: 204, error: null });
});
