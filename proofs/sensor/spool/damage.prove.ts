/**
 * Proof by damage: one flipped bit at places all over a spool, and the file cut at every length. What is intact goes on
 * under its old identity, the rest is an exact gap; nothing is wrong, nothing is lost in silence, nothing crashes.
 */

import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { seededRandom } from '#common/random/index.ts';
import type { TelemetryMinute, TelemetryUpload } from '#contracts/sensor-api/telemetry.ts';
import { decodeUpload, decompressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import type { Spool } from '#sensor/spool/index.ts';
import { digestOf } from '#sensor/spool/spool-state.ts';
import { firstMinute, openSpool, sampleMinute } from '#sensor/testing/sample-minutes.ts';

export const name = 'sensor-spool-damage';

const delivered = 3;
const pending = 60;
const fileName = 'spool-1.sqlite';
/** Cuts at multiples of this are tried first to last. */
const cutStep = 512;
const at = (index: number) => firstMinute + index * 60;

export interface DamageOptions {
  /** Flips, and cuts. */
  n: number;
  seed: number;
  report(line: string): void;
}

type Plant = 'digest_unchecked' | 'damage_unreported' | null;

export async function prove(options: DamageOptions) {
  const flips = damageSpools({ ...options, kind: 'flip', plant: null });
  const cuts = damageSpools({ ...options, kind: 'cut', plant: null });
  for (const offence of [...flips.offences, ...cuts.offences]) options.report(offence);
  let caught = 0;
  for (const plant of ['digest_unchecked', 'damage_unreported'] as const) {
    const n = Math.min(options.n, 150);
    const { offences } = damageSpools({ ...options, n, kind: 'flip', plant });
    options.report(`planted ${plant}: ${offences[0] ?? 'NOT NOTICED'}`);
    if (offences.length > 0) caught += 1;
  }
  return {
    claim: `a flipped bit costs at most one upload, a cut what lay behind it, each an exact gap (${flips.gaps} of ${flips.tried} flips and ${cuts.gaps} minutes of ${cuts.tried} cuts)`,
    tried: flips.tried + cuts.tried,
    failures: flips.offences.length + cuts.offences.length,
    plantedBugsCaught: `${caught} of 2`,
  };
}

export interface DamageInput extends DamageOptions {
  kind: 'flip' | 'cut';
  plant: Plant;
}

export interface DamageResult {
  tried: number;
  /** Minutes that became gaps. */
  gaps: number;
  offences: string[];
}

/** Damages `n` copies of one spool, opens each, delivers what is in it, and compares. */
export function damageSpools({ n, seed, kind, plant }: DamageInput): DamageResult {
  // What is damaged lies in the file; a disk would only be slower.
  const folder = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'svc-damage-'));
  decoded.clear();
  try {
    const source = join(folder, 'source');
    fillSpool(source);
    const bytes = readFileSync(join(source, fileName));
    const random = seededRandom(seed);
    const result: DamageResult = { tried: 0, gaps: 0, offences: [] };
    for (let i = 0; i < n; i += 1) {
      const { damaged, where } = kind === 'flip' ? flip(bytes, i, random) : cut(bytes, i, n);
      const directory = join(folder, String(i));
      cpSync(source, directory, { recursive: true });
      writeFileSync(join(directory, fileName), damaged);
      if (plant === 'digest_unchecked') believeEverything(directory);
      // Damage leaves no trace in the file's time.
      utimesSync(join(directory, fileName), at(delivered + pending), at(delivered + pending));
      const fate = fateOf(directory, plant);
      rmSync(directory, { recursive: true, force: true });
      result.tried += 1;
      result.gaps += fate.gaps;
      result.offences.push(...fate.wrong.map((what) => `${where}: ${what}`));
      // A bit lies in one upload's pages, or in pages that belong to none.
      if (kind === 'flip' && fate.gaps > 1)
        result.offences.push(`${where}: ${fate.gaps} minutes became gaps`);
    }
    return result;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Uploads of some 12 KiB each, most of them in pages of their own. */
function fillSpool(directory: string): void {
  mkdirSync(directory);
  const { spool } = openSpool(directory);
  for (let index = 0; index < delivered; index += 1) spool.append([sampleMinute(at(index), index)], []);
  deliver(spool);
  for (let index = delivered; index < delivered + pending; index += 1) spool.append([largeMinute(index)], []);
  spool.close();
}

function largeMinute(index: number): TelemetryMinute {
  const usage = Array.from({ length: 200 }, (_, i) => ({
    client: '192.0.2.1',
    server: '192.0.2.2',
    protocol: 6,
    serverPort: 443,
    direction: 'outbound' as const,
    // A checksum does not compress.
    name: createHash('sha512').update(`${index} ${i}`).digest('hex').slice(0, 120),
    evidence: 'tls_sni' as const,
    clientBytes: 1,
    serverBytes: 1,
    packets: 2,
    clientLastSentMs: 0,
    serverLastSentMs: 0,
  }));
  return { ...sampleMinute(at(index), index), usage };
}

function flip(bytes: Buffer, i: number, random: () => number): { damaged: Buffer; where: string } {
  // Headers, schema and states are few bytes with much weight: every fourth flip goes there.
  const range = i % 4 === 0 ? 5 * 4096 : bytes.length;
  const offset = Math.floor(random() * range);
  const bit = Math.floor(random() * 8);
  const damaged = Buffer.from(bytes);
  damaged[offset]! ^= 1 << bit;
  return { damaged, where: `bit ${bit} of byte ${offset}` };
}

function cut(bytes: Buffer, i: number, n: number): { damaged: Buffer; where: string } {
  const places = Math.floor(bytes.length / cutStep);
  // Fewer than there are places: spread evenly, the last ones among them.
  const length = (n >= places ? i % places : Math.floor(((i + 1) / n) * places) - 1) * cutStep;
  return { damaged: bytes.subarray(0, length), where: `cut to ${length}` };
}

/** Most uploads are intact in every try: the same bytes are decoded once. */
const decoded = new Map<string, TelemetryUpload>();

function decode(body: Uint8Array): TelemetryUpload {
  const key = createHash('sha256').update(body).digest('hex');
  const known = decoded.get(key);
  if (known) return known;
  const upload = decodeUpload(decompressUpload(body, 'zstd'));
  decoded.set(key, upload);
  return upload;
}

/**
 * Delivers what waits as a monitor takes it: an upload that comes again under its identity counts once. Damage that shows
 * only when the spool writes takes back the removal of an upload that was received already.
 */
function deliver(spool: Spool): { uploads: TelemetryUpload[]; wrong: string[] } {
  const received = new Map<string, Uint8Array>();
  const uploads: TelemetryUpload[] = [];
  const wrong: string[] = [];
  for (let next = spool.oldest(); next; next = spool.oldest()) {
    const upload = decode(next.body);
    const identity = `${upload.spoolId} ${upload.sequence}`;
    const earlier = received.get(identity);
    if (!earlier) uploads.push(upload);
    else if (Buffer.compare(earlier, next.body) !== 0)
      wrong.push(`upload ${upload.sequence} came again with other bytes`);
    received.set(identity, next.body);
    spool.acknowledge(next, 'accepted');
  }
  return { uploads, wrong };
}

function fateOf(directory: string, plant: Plant): { gaps: number; wrong: string[] } {
  let uploads: TelemetryUpload[];
  let wrong: string[];
  try {
    const { spool } = openSpool(directory);
    ({ uploads, wrong } = deliver(spool));
    spool.close();
  } catch (error) {
    return { gaps: 0, wrong: [`the spool does not open: ${(error as Error).message}`] };
  }
  let gaps = 0;
  const reported = plant === 'damage_unreported' ? [] : uploads.flatMap((upload) => upload.gaps);
  for (let index = delivered; index < delivered + pending; index += 1) {
    const arrived = uploads.flatMap((upload) => upload.minutes).filter((one) => one.minute === at(index));
    const isGap = reported.some((gap) => gap.fromMinute <= at(index) && at(index) <= gap.toMinute);
    if (arrived.length > 1) wrong.push(`minute ${index} arrived ${arrived.length} times`);
    else if (arrived[0] && arrived[0].totals.ipBytes !== index)
      wrong.push(`minute ${index} arrived with wrong bytes`);
    else if (arrived[0] && isGap) wrong.push(`minute ${index} arrived and is a gap`);
    else if (!arrived[0] && !isGap) wrong.push(`minute ${index} is lost in silence`);
    if (isGap) gaps += 1;
  }
  for (const gap of reported) {
    if (gap.fromMinute < at(delivered)) wrong.push('a minute that was delivered is called a gap');
  }
  return { gaps, wrong };
}

/** Planted: digests are not compared but computed again from the present data. */
function believeEverything(directory: string): void {
  try {
    const db = new DatabaseSync(join(directory, fileName));
    const rows = db.prepare('SELECT position, spool_id, sequence, payload FROM uploads').all() as {
      position: number;
      spool_id: string;
      sequence: number;
      payload: Uint8Array;
    }[];
    for (const row of rows) {
      const digest = digestOf(row.spool_id, String(row.sequence), row.payload);
      db.prepare('UPDATE uploads SET sha256 = ? WHERE position = ?').run(digest, row.position);
    }
    db.close();
  } catch {
    // SQLite itself refuses the file.
  }
}
