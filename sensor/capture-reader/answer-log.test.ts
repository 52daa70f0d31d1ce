import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ListedAnswer, PageFile, RawAnswer } from '#sensor/capture/index.ts';
import { AnswerLog } from './answer-log.ts';

const names = ['www.example.com', 'a"quote\\and\u0001control', 'x'.repeat(253), '\u0000'.repeat(253)];

function memoryFile(): PageFile & { pages: Uint8Array[] } {
  const pages: Uint8Array[] = [];
  return {
    pages,
    write: (page) => pages.push(page.slice()) - 1,
    read: (number, into) => into.set(pages[number]!),
  };
}

function rawAnswer(serial: number, chain: string[], addressCount: number): RawAnswer {
  return {
    version: 4,
    ends: Int32Array.of(0, 0, 0, 0x0a000001, 0, 0, 0, 0x0a000035),
    clientPort: serial % 65_536,
    serverPort: 53,
    querySeen: serial % 2 === 0,
    names: Buffer.concat(chain.map((name) => Buffer.from(name.padEnd(256), 'latin1'))),
    chainLength: chain.length,
    nameAt: (position) => position * 256,
    nameLength: (position) => chain[position]!.length,
    addressCount,
    addresses: Int32Array.from({ length: addressCount * 5 }, (_, i) => (i % 5 === 0 ? 6 : 0x11111111)),
    ttls: new Float64Array(addressCount).fill(2 ** 32 - 1),
    make: () => {
      throw new Error('not for the log');
    },
  };
}

function listed(raw: RawAnswer, chain: string[]): ListedAnswer {
  const shown = chain.map((name) =>
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these characters are escaped.
    name.replace(/[\u0000-\u0020]/g, (one) => `\\${String(one.charCodeAt(0)).padStart(3, '0')}`),
  );
  return {
    client: { ip: '10.0.0.1', port: raw.clientPort },
    server: { ip: '10.0.0.53', port: 53 },
    name: shown[0]!,
    addresses: Array.from(raw.ttls, (ttl) => ({ address: '1111:1111:1111:1111:1111:1111:1111:1111', ttl })),
    cnameChain: shown,
    querySeen: raw.querySeen,
  };
}

test('answers are read back unchanged, from memory, from the page file, and at the largest size', () => {
  const file = memoryFile();
  const log = new AnswerLog(file, Number.POSITIVE_INFINITY);
  const wanted: ListedAnswer[] = [];
  for (let serial = 0; serial < 1200; serial += 1) {
    const chain = Array.from({ length: 1 + (serial % 16) }, (_, i) => names[(serial + i) % names.length]!);
    const raw = rawAnswer(serial, chain, serial % 65);
    log.add(raw);
    wanted.push(listed(raw, chain));
  }
  assert.ok(file.pages.length > 10);
  assert.deepEqual([...log.answers()], wanted);
  const text = Buffer.concat(Array.from(log.pieces(), (piece) => piece.slice())).toString();
  const parsed = JSON.parse(`[${text}]`) as unknown[];
  assert.equal(parsed.length, 1200);
  const { cnameChain: cname_chain, querySeen: query_seen, ...rest } = wanted[3]!;
  const { client, server, name, addresses } = rest;
  assert.equal(
    text.split(',\n  ')[3],
    JSON.stringify({ client, server, name, cname_chain, addresses, query_seen }),
  );
});

test('answers above the limit are counted, and an empty log has none', () => {
  const log = new AnswerLog(memoryFile(), 2);
  assert.deepEqual([...log.answers()], []);
  for (let serial = 0; serial < 5; serial += 1) log.add(rawAnswer(serial, ['a.example'], 1));
  assert.equal(log.count, 5);
  assert.deepEqual(
    [...log.answers()].map(({ client }) => client.port),
    [0, 1],
  );
  assert.equal(Array.from(log.pieces()).length, 1);
});
