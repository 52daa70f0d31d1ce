import assert from 'node:assert/strict';
import { test } from 'node:test';
import { answerQuery } from './dns-service.ts';
import { manyAddresses, manyAddressesName } from './internet-plan.ts';

const recordTypes = { a: 1, aaaa: 28, opt: 41 } as const;

/** Written by hand, so that the resolver is not tested with what it reads with. */
function query(name: string, type: number, udpBytes?: number): Buffer {
  const header = Buffer.from([0xab, 0xcd, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, udpBytes ? 1 : 0]);
  const question = Buffer.concat([writeName(name), Buffer.from([0, type, 0, 1])]);
  const opt = udpBytes
    ? Buffer.from([0, 0, recordTypes.opt, udpBytes >> 8, udpBytes & 255, 0, 0, 0, 0, 0, 0])
    : [];
  return Buffer.concat([header, question, Buffer.from(opt)]);
}

/** A name as length-prefixed labels. */
function writeName(name: string): Buffer {
  const labels = name.split('.').map((label) => {
    return Buffer.concat([Buffer.from([label.length]), Buffer.from(label, 'latin1')]);
  });
  return Buffer.concat([...labels, Buffer.from([0])]);
}

const noAddress = () => null;
const counts = (answer: Buffer) => ({ flags: answer.readUInt16BE(2), answers: answer.readUInt16BE(6) });

test('a name has its own address of each family, and an alias is answered with where it leads', () => {
  const plain = answerQuery(query('www.example.com', recordTypes.a), noAddress, 'udp')!;
  assert.deepEqual(counts(plain), { flags: 0x8180, answers: 1 });
  assert.deepEqual([...plain.subarray(-4)], [198, 51, 100, 80]);
  const six = answerQuery(query('WWW.example.com', recordTypes.aaaa), noAddress, 'udp')!;
  assert.equal(six.subarray(-16).toString('hex'), '20010db8005100000000000000000080');
  assert.equal(counts(answerQuery(query('cdn.example.net', recordTypes.a), noAddress, 'udp')!).answers, 2);
});

test('a guest is found under its hosted name, and an unknown name does not exist', () => {
  const find = (name: string) => (name === 'vm-1.example.edu' ? ['203.0.113.17'] : null);
  const known = answerQuery(query('vm-1.example.edu', recordTypes.a), find, 'udp')!;
  assert.deepEqual([...known.subarray(-4)], [203, 0, 113, 17]);
  // No IPv6: the name exists, the answer is empty.
  assert.deepEqual(counts(answerQuery(query('vm-1.example.edu', recordTypes.aaaa), find, 'udp')!), {
    flags: 0x8180,
    answers: 0,
  });
  assert.deepEqual(counts(answerQuery(query('vm-2.example.edu', recordTypes.a), find, 'udp')!), {
    flags: 0x8183,
    answers: 0,
  });
});

test('an answer too large for the client is cut short by UDP and whole by TCP', () => {
  const asked = query(manyAddressesName, recordTypes.a, 1232);
  assert.deepEqual(counts(answerQuery(asked, noAddress, 'udp')!), { flags: 0x8380, answers: 0 });
  assert.deepEqual(counts(answerQuery(asked, noAddress, 'tcp')!), {
    flags: 0x8180,
    answers: manyAddresses.length,
  });
  assert.equal(
    counts(answerQuery(query(manyAddressesName, recordTypes.a, 9000), noAddress, 'udp')!).answers,
    110,
  );
});

test('what is no query gets no answer, wherever it is cut', () => {
  const whole = query('www.example.com', recordTypes.a);
  for (let length = 0; length < whole.length; length += 1) {
    assert.equal(answerQuery(whole.subarray(0, length), noAddress, 'udp'), null);
  }
  const answer = Buffer.from(whole);
  answer[2] = 0x81;
  assert.equal(answerQuery(answer, noAddress, 'udp'), null);
});
