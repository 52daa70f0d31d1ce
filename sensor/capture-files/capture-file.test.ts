import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { after, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { seededRandom } from '#common/random/index.ts';
import { pcapFile, pcapngFile, type StoredFrame } from '#sensor/testing/capture-files.ts';
import { join } from '#sensor/testing/frames.ts';
import { NotACaptureError, openCaptureFile } from './index.ts';

const folder = mkdtempSync(joinPath(tmpdir(), 'svc-capture-file-'));
after(() => rmSync(folder, { recursive: true }));

let files = 0;
function stored(bytes: Uint8Array): string {
  files += 1;
  const path = joinPath(folder, `${files}.pcap`);
  writeFileSync(path, bytes);
  return path;
}

interface ReadFrame {
  text: string;
  seconds: number;
  nanoseconds: number;
  wire: number;
  linkType: number;
}

function readAll(bytes: Uint8Array): { frames: ReadFrame[]; problems: string[] } {
  const file = openCaptureFile(stored(bytes));
  const frames: ReadFrame[] = [];
  while (file.next()) {
    const { offset, capturedLength, seconds, nanoseconds, linkType, wireLength } = file;
    const text = Buffer.from(file.bytes.subarray(offset, offset + capturedLength)).toString('latin1');
    frames.push({ text, seconds, nanoseconds, wire: wireLength, linkType });
  }
  file.close();
  return { frames, problems: file.problems };
}

const bytesOf = (text: string) => new Uint8Array(Buffer.from(text, 'latin1'));
const frames: StoredFrame[] = [
  { bytes: bytesOf('first'), seconds: 1_700_000_000, nanoseconds: 1_002_000 },
  { bytes: bytesOf('second one'), seconds: 1_700_000_001, nanoseconds: 999_999_000, wireLength: 1500 },
  { bytes: bytesOf(''), seconds: 1_700_000_002, nanoseconds: 0 },
];
const expected = [
  { text: 'first', seconds: 1_700_000_000, nanoseconds: 1_002_000, wire: 5, linkType: 1 },
  { text: 'second one', seconds: 1_700_000_001, nanoseconds: 999_999_000, wire: 1500, linkType: 1 },
  { text: '', seconds: 1_700_000_002, nanoseconds: 0, wire: 0, linkType: 1 },
];

test('the same frames are read from pcap and pcapng, either byte order, micro- and nanoseconds', () => {
  for (const isLittle of [true, false]) {
    assert.deepEqual(readAll(pcapFile(frames, { isLittle })).frames, expected);
    assert.deepEqual(readAll(pcapFile(frames, { isLittle, isNano: true })).frames, expected);
    assert.deepEqual(readAll(pcapngFile(frames, { isLittle })).frames, expected);
    const nano = pcapngFile(frames, { isLittle, interfaces: [{ linkType: 1, resolution: 9 }] });
    // Nanoseconds since 1970 exceed the precision of a number, by a few hundred nanoseconds.
    for (const [i, frame] of readAll(nano).frames.entries()) {
      assert.ok(Math.abs(frame.nanoseconds - expected[i]!.nanoseconds) < 500);
      assert.deepEqual({ ...frame, nanoseconds: 0 }, { ...expected[i]!, nanoseconds: 0 });
    }
  }
});

test('compressed files give the same frames, also with several compressed members; a truncated one gives the frames before the end', () => {
  const random = seededRandom(1);
  const many = Array.from({ length: 9000 }, (_, i) => ({
    // Random bytes do not compress.
    bytes: Uint8Array.from({ length: 200 }, () => random() * 256),
    seconds: 1_700_000_000 + i,
    nanoseconds: 0,
  }));
  const plain = pcapFile(many);
  const whole = readAll(plain).frames;
  const half = plain.length >> 1;
  for (const pack of [gzipSync, zstdCompressSync]) {
    const packed = pack(plain);
    assert.deepEqual(readAll(packed), { frames: whole, problems: [] });
    const parts = Buffer.concat([pack(plain.subarray(0, half)), pack(plain.subarray(half))]);
    assert.deepEqual(readAll(parts), { frames: whole, problems: [] });
    const cut = readAll(packed.subarray(0, packed.length >> 1));
    assert.ok(cut.frames.length > 3000 && cut.frames.length < 5000, `${cut.frames.length} frames`);
    assert.deepEqual(cut.frames, whole.slice(0, cut.frames.length));
    assert.match(cut.problems[0]!, /is damaged or truncated: it can not be decompressed completely/);
  }
});

test('frames of several interfaces keep their own link type and time units', () => {
  const mixed = [
    { ...frames[0]!, interfaceIndex: 1 },
    { ...frames[1]!, interfaceIndex: 0 },
  ];
  const bytes = pcapngFile(mixed, { interfaces: [{ linkType: 1 }, { linkType: 101, resolution: 3 }] });
  assert.deepEqual(
    readAll(bytes).frames.map((frame) => [frame.linkType, frame.nanoseconds]),
    [
      [101, 1_000_000],
      [1, 999_999_000],
    ],
  );
});

test('two sections of different byte order in one file are read one after the other', () => {
  const bytes = join(pcapngFile(frames.slice(0, 1)), pcapngFile(frames.slice(1, 2), { isLittle: false }));
  assert.deepEqual(readAll(bytes).frames, expected.slice(0, 2));
});

test('a file truncated anywhere gives the complete frames before the end and reports it', () => {
  for (const whole of [pcapFile(frames), pcapngFile(frames)]) {
    for (let length = 24; length < whole.length; length += 1) {
      const cut = whole.slice(0, length);
      const { frames: found, problems } = readAll(cut);
      assert.deepEqual(found, expected.slice(0, found.length));
      assert.ok(problems.length <= 1);
      if (found.length === frames.length) continue;
      const isBetween = readAll(join(cut, new Uint8Array(0))).problems.length === 0;
      assert.ok(isBetween || problems[0]!.includes('the packets before were read'), `cut at ${length}`);
    }
  }
});

test('frames larger than the buffer and files of many pieces are read completely', () => {
  const large = [300_000, 10, 262_144, 1_000_000].map((size, i) => ({
    bytes: new Uint8Array(size).fill(65 + i),
    seconds: i,
    nanoseconds: 0,
  }));
  for (const bytes of [pcapFile(large), pcapngFile(large)]) {
    const { frames: found, problems } = readAll(bytes);
    assert.deepEqual(
      found.map((frame) => [frame.text.length, frame.text[0], frame.text.at(-1)]),
      [
        [300_000, 'A', 'A'],
        [10, 'B', 'B'],
        [262_144, 'C', 'C'],
        [1_000_000, 'D', 'D'],
      ],
    );
    assert.deepEqual(problems, []);
  }
});

test('a file that is not a capture is refused with the reason', () => {
  const refusals: [Uint8Array, RegExp][] = [
    [new Uint8Array(0), /it is empty/],
    [new Uint8Array([1, 2]), /too short/],
    [bytesOf('hello, this is a text file'), /neither pcap nor pcapng/],
    [new Uint8Array([0x1f, 0x8b, 8, 0, 0, 0]), /can not be decompressed/],
    [new Uint8Array([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0]), /xz -dc/],
    [pcapFile([]).slice(0, 20), /header is truncated/],
  ];
  for (const [bytes, sentence] of refusals) {
    assert.throws(
      () => openCaptureFile(stored(bytes)),
      (error) => error instanceof NotACaptureError && sentence.test(error.message),
    );
  }
  assert.throws(() => openCaptureFile(joinPath(folder, 'missing')), /there is no such file/);
  assert.throws(() => openCaptureFile(folder), /a directory/);
});

test('a record of impossible length stops the reader', () => {
  const bytes = pcapFile(frames);
  bytes.set([0xff, 0xff, 0xff, 0x7f], 24 + 16 + 5 + 8);
  const { frames: found, problems } = readAll(bytes);
  assert.equal(found.length, 1);
  assert.match(problems[0]!, /damaged/);
});
