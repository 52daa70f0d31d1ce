/** The language of filters: what is read, what is refused and how, and one spelling of each value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { completeFilters, dimensions, type Filter, parseFilters, parseValue, printFilters } from './index.ts';

const box = { filters: dimensions.filter((one) => one !== 'service'), hasSegments: true };
const parse = (text: string) => parseFilters(text, box);

test('a line of filters is read with short names, negation and several values', () => {
  const { filters, faults } = parse(
    'app:GitHub,example.org  peer:198.51.100.0/24 port:443 -server:"web 1" app:example.net 2001:db8::1 -192.0.2.1',
  );
  assert.deepEqual(faults, []);
  assert.deepEqual(filters, [
    { dimension: 'server', is: false, values: ['web 1'] },
    { dimension: 'address', is: true, values: ['2001:db8::1'] },
    { dimension: 'address', is: false, values: ['192.0.2.1'] },
    { dimension: 'application', is: true, values: ['GitHub', 'example.org', 'example.net'] },
    { dimension: 'peer', is: true, values: ['198.51.100.0/24'] },
    { dimension: 'port', is: true, values: ['443'] },
  ]);
});

test('what can not be read says what to write, and the rest is read', () => {
  const { filters, faults } = parse('nonsense peer:198.51.100.1/24 colour:red port:70000 app: port:22');
  assert.deepEqual(filters, [{ dimension: 'port', is: true, values: ['22'] }]);
  assert.deepEqual(
    faults.map((one) => one.text),
    ['nonsense', 'peer:198.51.100.1/24', 'colour:red', 'port:70000', 'app:'],
  );
  for (const { message } of faults) assert.match(message, /Write|Use|zero/);
});

test('15 KB of filters are a hundred values and twenty faults', () => {
  const many = Array.from({ length: 1_000 }, (_, i) => `10.0.${i >> 8}.${i & 255}`);
  const { filters, faults } = parse(`port:22 peer:${many.join(',')} ${many.slice(0, 50).join(' ')}`);
  assert.equal(
    filters.reduce((count, { values }) => count + values.length, 0),
    100,
  );
  assert.match(faults[0]!.message, /at most 100 filter values/);
  const wrong = parse('x '.repeat(7_000));
  assert.deepEqual([wrong.filters.length, wrong.faults.length], [0, 20]);
  const one = parse(`port:${Array.from({ length: 2_000 }, () => 'x').join(',')} app:a`);
  assert.equal(one.faults.length, 20);
});

test('values have one spelling', () => {
  const spelled = [
    ['address', '2001:DB8:0::1', '2001:db8::1'],
    ['address', '10.0.0.9%br0.7', '10.0.0.9%br0.7'],
    ['peer', '2001:db8::/32', '2001:db8::/32'],
    ['transport', '6', 'tcp'],
    ['transport', 'UDP', 'udp'],
    ['transport', '200', 'ip-200'],
    ['transport', 'IP-6', 'tcp'],
    ['port', 'UDP/53', 'udp/53'],
    ['port', '17/53', 'udp/53'],
    ['port', 'None', 'none'],
    ['direction', 'Inbound', 'inbound'],
    ['scope', 'UPLINK', 'uplink'],
  ] as const;
  for (const [dimension, typed, value] of spelled)
    assert.deepEqual(parseValue(dimension, typed), { value }, typed);
  for (const [dimension, typed] of [
    ['peer', '10.0.0.1%br0'],
    ['transport', '256'],
    ['port', '-1'],
    ['port', '0443'],
    ['port', 'udp/65536'],
    ['port', 'wan/53'],
    ['transport', 'ip-256'],
    ['scope', 'wan'],
    ['server', 'a\u0000b'],
    ['application', 'a'.repeat(300)],
  ] as const)
    assert.ok('fault' in parseValue(dimension, typed), typed);
});

test('printed text is read back as the same filters, with any characters in the values', () => {
  const names = ['web 1', 'a,b', 'say "hi"', 'back\\slash', 'x:y', '-minus', 'ünï', ':', '%', "'", '"', '\\'];
  const filters: Filter[] = [
    { dimension: 'server', is: true, values: names },
    { dimension: 'address', is: true, values: ['10.0.0.9%br0', '2001:db8::/32'] },
    { dimension: 'application', is: false, values: names },
  ];
  assert.deepEqual(parse(printFilters(filters)), { filters, faults: [] });
});

test('hostile text ends soon and never throws', () => {
  const pieces = [
    'app:',
    '"',
    '\\',
    ',',
    '-',
    ':',
    ' ',
    '%',
    '/',
    '::',
    '1',
    'peer',
    '\u0000',
    '😀',
    'x'.repeat(300),
  ];
  let seed = 1;
  const next = () => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed;
  };
  for (let i = 0; i < 2000; i += 1) {
    const text = Array.from({ length: next() % 12 }, () => pieces[next() % pieces.length]).join('');
    const { filters } = parse(text);
    assert.deepEqual(parse(printFilters(filters)).filters, filters, text);
  }
  assert.equal(parse('a'.repeat(1_000_000)).faults.length, 1);
});

test('what a place has not is said with what it has, apart from what is no filter at all', () => {
  const few = { filters: ['application', 'port', 'side', 'address'] as const, hasSegments: false };
  const faultOf = (text: string) =>
    parseFilters(text, few)
      .faults.map(({ message }) => message)
      .join();
  const use = 'Use app, port, direction, address.';
  assert.equal(faultOf('sensor:hv-1'), `sensor: is not a filter of this page. ${use}`);
  assert.equal(faultOf('VM:web'), `VM: is not a filter of this page. ${use}`);
  assert.equal(faultOf('colour:red'), `There is no filter colour. ${use}`);
  assert.equal(faultOf('direction:inbound'), 'direction:inbound is not a filter of this page. Use in, out.');
  assert.equal(faultOf('direction:up'), 'up is no direction. Use in, out.');
  assert.match(faultOf('address:10.0.0.9%br0'), /not a filter of this page/);
  assert.deepEqual(parseFilters('direction:OUT', few).filters, [
    { dimension: 'side', is: true, values: ['out'] },
  ]);
});

test('the last word of a filter box is completed, open quotes included', async () => {
  const listed: string[] = [];
  const complete = (typed: string) =>
    completeFilters(typed, box, async (dimension, text) => {
      listed.push(`${dimension} ${text}`);
      return ['web 1', 'b'];
    });
  assert.deepEqual(await complete('port:443 -server:"web 1'), [
    'port:443 -server:"web 1"',
    'port:443 -server:b',
  ]);
  assert.deepEqual(listed, ['server web 1']);
  assert.deepEqual(await complete('ap'), ['app:']);
  assert.deepEqual(await complete('app:x -DIR'), ['app:x -direction:']);
  assert.deepEqual(await complete('direction:in'), [
    'direction:in',
    'direction:inbound',
    'direction:internal',
  ]);
  assert.deepEqual(await complete('colour:'), []);
});
