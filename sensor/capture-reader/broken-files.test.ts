// Slow: reads hundreds of broken capture files.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { seededRandom } from '#common/random/index.ts';
import { fileOfBrokenFrames, mutateFile, type SeedFile, seedFiles } from '#sensor/testing/file-mutations.ts';
import { type PrintedReading, readInProcess } from '#sensor/testing/read-in-process.ts';
import type { ReadOptions } from './index.ts';

const manyOptions: readonly ReadOptions[] = [
  {},
  { top: '0' },
  { json: true },
  { json: true, minutes: true },
  { minutes: true, top: '3', sort: 'name' },
  { json: true, sort: 'time', name: ['*example*'] },
  { local: ['192.0.2.0/24'], port: ['443'], to: '23:59' },
];

type Rows = Record<string, number | string | null>[];

function judge({ status, stdout, stderr }: PrintedReading, asked: ReadOptions, file: SeedFile): void {
  if (status === 2) {
    assert.ok(stdout === '' && stderr !== '', 'what is refused is said in words');
    return;
  }
  assert.equal(status, 0);
  if (!asked.json) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: no control character from a file may reach a terminal.
    assert.doesNotMatch(stdout, /[\u0000-\u0009\u000b-\u001f\u007f]|NaN|undefined|Infinity|\[object/);
    return;
  }
  const read = JSON.parse(stdout) as { capture: Record<string, number> } & Record<string, Rows>;
  const { packets, bytes, ip_packets, non_ip, parser_dropped } = read.capture;
  assert.equal(packets, ip_packets! + non_ip! + parser_dropped!);
  // A packet needs at least 16 bytes in a file, except in a compressed one.
  if (!/gzip|zstd/.test(file.format)) assert.ok(packets! * 16 <= file.bytes.length);
  const sum = (list: string, ...fields: string[]) =>
    read[list]!.reduce((total, row) => fields.reduce((all, field) => all + Number(row[field]), total), 0);
  const untimed = Number(/(\d+) packets have no time/.exec(stderr)?.[1] ?? 0);
  if (asked.minutes) assert.equal(sum('minutes', 'packets') + untimed, packets);
  if (asked.name) return;
  assert.equal(sum('applications', 'inbound_bytes', 'outbound_bytes'), bytes);
  assert.equal(sum('conversations', 'bytes_a_to_b', 'bytes_b_to_a'), bytes);
}

test('NET-2.2.6: a broken capture file of any format is read or refused, and each packet counts once', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-broken-files-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const path = join(folder, 'broken');
  const random = seededRandom(1);
  const seeds = seedFiles(random);
  const statuses = new Set<number>();
  for (let i = 0; i < 500; i += 1) {
    const file = random() < 0.1 ? fileOfBrokenFrames(random) : mutateFile(seeds, random);
    const asked = manyOptions[i % manyOptions.length]!;
    writeFileSync(path, file.bytes);
    try {
      const printed = await readInProcess([path], asked);
      judge(printed, asked, file);
      statuses.add(printed.status);
    } catch (error) {
      const shown = Buffer.from(file.bytes).toString('base64');
      throw new Error(`file ${i} (${file.format}, ${JSON.stringify(asked)}): ${shown}`, { cause: error });
    }
  }
  assert.deepEqual(statuses, new Set([0, 2]));
});
