import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hasCode } from '#common/errors/index.ts';
import { type AttackWords, attackClasses, perSecondMax, readOrder, secondsMax } from './attack-order.ts';
import { describeProgress, describeResult, findTarget, type ShownGuest } from './index.ts';

const words: AttackWords = {
  target: '203.0.113.17',
  class: 'syn_flood',
  pps: '25000',
  seconds: '60',
  from: 'outside',
};
const read = (more: Partial<AttackWords>) => readOrder({ ...words, ...more });

function refuses(more: Partial<AttackWords>, pattern: RegExp): void {
  assert.throws(
    () => read(more),
    (error) => hasCode(error, 'lab.attack_invalid') && pattern.test((error as Error).message),
    JSON.stringify(more),
  );
}

describe('lab attack: an order', () => {
  test('is read as it was given, with a canonical target', () => {
    assert.deepEqual(read({}), {
      target: '203.0.113.17',
      attackClass: 'syn_flood',
      perSecond: 25_000,
      seconds: 60,
      from: null,
    });
    assert.equal(read({ target: '2001:DB8:113:0::17' }).target, '2001:db8:113::17');
    for (const known of attackClasses) assert.equal(read({ class: known }).attackClass, known);
  });

  test('is bounded in rate and duration', () => {
    assert.equal(read({ pps: String(perSecondMax), seconds: String(secondsMax) }).perSecond, 200_000);
    for (const pps of ['0', '200001', '-1', '1.5', '1e3', '', 'many'])
      refuses({ pps }, /--pps .* 1 to 200000/);
    for (const seconds of ['0', '601', '-1', '0.5', '']) refuses({ seconds }, /--seconds .* 1 to 600/);
    refuses({ class: 'ping_of_death' }, /--class must be one of syn_flood, /);
    refuses({ target: 'vm-17' }, /--target must be an IP address/);
  });

  test('spoofs no source but those of its benchmark and documentation ranges', () => {
    assert.equal(read({ from: '198.18.7.9' }).from, '198.18.7.9');
    for (const from of [
      '8.8.8.8',
      '203.0.113.18',
      '198.51.100.2',
      '198.19.0.1',
      '2001:db8:e000::1',
      'inside',
    ])
      refuses({ from }, /inside 198\.18\.0\.0\/16/);
    refuses({ from: '198.18.7.9', class: 'connection_flood' }, /inside 198\.19\.0\.0\/24/);
    assert.equal(read({ from: '198.19.0.9', class: 'high_volume' }).from, '198.19.0.9');
    assert.equal(read({ from: '2001:db8:e000::1', target: '2001:db8:113::17' }).from, '2001:db8:e000::1');
    refuses({ from: '2001:db8:113::18', target: '2001:db8:113::17' }, /inside 2001:db8:e000::\/36/);
  });

  test('has a result that says what was reached', () => {
    const result = { sent: 1_497_320, elapsedMs: 60_000, answered: null };
    const line = 'sent 1,497,320 packets in 60.0 s, 24,955/s asked 25,000/s';
    assert.equal(describeResult(read({}), result), line);
    assert.equal(
      describeProgress(read({}), { sent: 25_000, elapsedMs: 1001 }),
      '1 s: 25,000 packets, 24,975/s',
    );
    assert.equal(
      describeResult(read({ class: 'connection_flood', pps: '500' }), {
        sent: 500,
        elapsedMs: 1000,
        answered: 499,
      }),
      'opened 500 connections in 1.0 s, 500/s asked 500/s; 499 were accepted',
    );
  });
});

const guests: ShownGuest[] = [
  {
    name: 'vm-17',
    power: 'on',
    addresses: [{ address: '203.0.113.17' }, { address: '2001:db8:113::17' }],
    private_interfaces: [{ address: '10.20.0.5' }],
  },
  { name: 'vm-18', power: 'off', addresses: [{ address: '203.0.113.18' }], private_interfaces: [] },
];

describe('lab attack: a target', () => {
  test('is a public address of a guest that is on', () => {
    assert.equal(findTarget(guests, '2001:db8:113::17').name, 'vm-17');
  });

  for (const [what, target, pattern] of [
    ['outside the lab', '192.0.2.1', /192\.0\.2\.1 is not an address of a guest of this lab/],
    ['of the lab’s internet', '198.51.100.80', /is not an address of a guest/],
    ['of a guest that is off', '203.0.113.18', /The guest "vm-18" with 203\.0\.113\.18 is off/],
    ['on a private network', '10.20.0.5', /10\.20\.0\.5 is on a private network/],
  ] as const) {
    test(`${what} is refused, and the allowed ones are named`, () => {
      assert.throws(
        () => findTarget(guests, target),
        (error) => {
          const { message } = error as Error;
          assert.match(message, pattern);
          assert.match(message, /Allowed targets: 203\.0\.113\.17, 2001:db8:113::17\.$/);
          return hasCode(error, 'lab.attack_refused');
        },
      );
    });
  }

  test('is refused when no guest is on', () => {
    assert.throws(() => findTarget([], '203.0.113.17'), /No guest of this lab is on/);
  });
});
