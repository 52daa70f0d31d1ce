/**
 * Proof on a veth pair: the captures of the corpus `detection`, replayed in both directions at their own pace, get their right answers
 * from a running sensor, as they do from the file. Some are replayed a hundredfold against the default thresholds, where the machine keeps
 * their pace. Where Debian's FastNetMon is installed, it listens to the same packets with the same thresholds, and the report
 * says what it banned.
 *
 * The same without the answers of the protected addresses must be an attack, or the proof shows nothing.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { dividedThresholds } from '#sensor/testing/attack-traffic.ts';
import { corpusFolder } from '#sensor/testing/corpus.ts';
import { startFastNetMon, startSensor } from '#sensor/testing/live-programs.ts';
import type { ReplayReport } from '#sensor/testing/replay.ts';
import { isInstalled, openReplayLink, requireTools, runFor } from '#sensor/testing/tool-link.ts';

export const name = 'corpus-live';

export const plantedFaults = ['answers are not replayed'] as const;

export interface ProveOptions {
  /** Replays; from the first row on. */
  n: number;
  seed: number;
  report: (line: string) => void;
  /** FastNetMon listens too, where it is installed. */
  isBeside?: boolean;
}

interface Row {
  file: string;
  /** The classes of the attacks in the end, with their targets where there is one; none for ordinary traffic. */
  right: readonly string[];
  protect?: string;
  /** How often each packet is sent: then thresholds are the defaults. */
  copies?: number;
  /** How long the sensor listens before: what an uplink usually has is known after five whole minutes. */
  quietMs?: number;
}

const everything = '203.0.113.0/24';
const divisor = 100;
const ordinaryFiles = [
  'quic-8',
  'wg-hub-30clients',
  'gameserver-600players',
  'esp-6peers',
  'gre-fragmented-tunnel',
  'vxlan8472-2nodes',
];

const rows: readonly Row[] = [
  { file: 'quic-8', right: [] },
  { file: 'v6-64rand-1.67udp', right: ['udp_flood 2001:db8:5:7::/64'], protect: '2001:db8:5:7::/64' },
  ...ordinaryFiles.slice(1).map((file) => ({ file, right: [] })),
  { file: 'web-nokeepalive-150cps-short', right: [] },
  { file: 'hscan-24-port22', right: [] },
  { file: 'any-sll2-3x', right: [] },
  { file: 'vector-rotate', right: ['amplification'] },
  { file: 'pulse-0.9s-every5s-10x', right: ['udp_flood'] },
  { file: 'amp-ports-2x-spread', right: Array.from({ length: 7 }, () => 'amplification') },
  { file: 'stopddos-amp.dns.RRSIG.fragmented', right: ['amplification'], protect: '10.10.10.0/24' },
  { file: 'protos', right: Array.from({ length: 5 }, () => 'protocol_flood') },
  { file: 'outbound-memcached-7.8Mbit', right: ['reflector'] },
  { file: 'outbound-spoofed-syn-30x', right: ['syn_flood'] },
  ...ordinaryFiles.map((file) => ({ file, right: [], copies: divisor })),
  { file: 'vector-rotate', right: ['amplification'], copies: divisor },
  { file: 'pulse-0.9s-every5s-10x', right: ['udp_flood'], copies: divisor },
  {
    ...{ file: 'carpet-scattered-8x0.9', right: ['udp_flood'] },
    ...{ protect: '198.18.0.0/16', quietMs: 390_000 },
  },
];

/** Averages of FastNetMon fill first; the sensor needs no more than its threads. */
const settleMs = { alone: 500, beside: 6000 } as const;
/** After the last packet, what it began is decided. */
const afterMs = 4000;
/** A replay that was later than this had not the pace of its file. */
const lateMsMax = 400;
const attemptsMax = 3;

export async function prove({ n, report, isBeside = true }: ProveOptions) {
  const hasOther = isBeside && isInstalled('fastnetmon');
  requireTools({ ip: 'iproute2' });
  let failures = 0;
  let falseAlarms = 0;
  let missed = 0;
  const tried = rows.slice(0, n);
  for (const row of tried) {
    const title = `${row.file}${row.copies ? `, ${row.copies} times` : ''}`;
    const played = await replayInPace(row, hasOther, 'both');
    if (played === null) {
      report(`${title}: NOT JUDGED, the machine did not keep its pace`);
      if (!row.copies) failures += 1;
      continue;
    }
    const { said, offence, bans } = played;
    if (offence) failures += 1;
    const isQuiet = row.right.length === 0;
    if (isQuiet && bans.length > 0) falseAlarms += 1;
    if (!isQuiet && bans.length === 0) missed += 1;
    const other = hasOther ? `; FastNetMon: ${bans.join(', ') || 'nothing'}` : '';
    report(`${title}: ${said}${offence ? ', WRONG' : ''}${other}`);
  }
  if (hasOther)
    report(`FastNetMon: ${falseAlarms} false alarms, ${missed} attacks missed, of ${tried.length} replays`);
  const spoilt = await replayInPace(rows[0]!, false, 'arriving');
  const isCaught = spoilt?.offence === true;
  report(`planted "${plantedFaults[0]}": ${isCaught ? spoilt.said : 'NOT NOTICED'}`);
  return {
    claim:
      'captures of ordinary traffic and of attacks, replayed on a veth pair, get their right answers from a running sensor',
    tried: tried.length,
    failures,
    plantedBugsCaught: `${isCaught ? 1 : 0} of 1`,
  };
}

interface Played {
  said: string;
  offence: boolean;
  bans: string[];
}

/** Replays until the machine kept the pace; null if it never did. */
async function replayInPace(row: Row, hasOther: boolean, which: 'both' | 'arriving'): Promise<Played | null> {
  for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
    const played = await replay(row, hasOther, which);
    if (played !== null) return played;
  }
  return null;
}

async function replay(row: Row, hasOther: boolean, which: 'both' | 'arriving'): Promise<Played | null> {
  const { file, right, protect = everything, copies, quietMs = 0 } = row;
  const folder = mkdtempSync(join(tmpdir(), 'svc-corpus-live-'));
  const link = openReplayLink();
  const place = { words: link.words, interfaceName: link.near, folder };
  const scope = { prefixes: [protect], thresholds: dividedThresholds(copies ? 1 : divisor) };
  const sensor = startSensor(place, scope);
  const otherFolder = join(folder, 'other');
  mkdirSync(otherFolder);
  const other = hasOther ? startFastNetMon({ ...place, folder: otherFolder }, scope) : null;
  try {
    await Promise.all([sensor.ready, other?.ready]);
    await wait(settleMs[other ? 'beside' : 'alone'] + quietMs);
    const path = join(corpusFolder(), 'detection', `${file}.pcap.gz`);
    const words = [...link.words, process.execPath, '--disable-warning=ExperimentalWarning', replayFile];
    const options = [path, link.far, link.near, String(copies ?? 1), which, protect];
    const lines = (await runFor([...words, ...options], 120)).trim().split('\n');
    const [began, ended] = lines.map((line) => JSON.parse(line) as ReplayReport);
    if (!began || !('startedAt' in began) || !ended || !('lateMs' in ended))
      throw new Error(lines.join('\n'));
    await wait(afterMs);
    if (ended.lateMs > lateMsMax) return null;
    const after = (atMs: number) => `${((atMs - began.startedAt) / 1000).toFixed(1)} s`;
    const attacks = new Map(sensor.attacks().map((one) => [one.target, one]));
    const first = new Map(sensor.attacks().map((one) => [one.target, sensor.decidedAt(one.target)!]));
    const found = [...attacks.values()].map((one) => `${one.class} ${one.target}`);
    const isRight =
      found.length === right.length && right.every((wanted) => found.some((one) => one.startsWith(wanted)));
    return {
      said:
        found.map((one) => `${one} after ${after(first.get(one.split(' ')[1]!)!)}`).join(', ') || 'no attack',
      offence: !isRight,
      bans: other?.bans().map((one) => `${one.target} after ${after(one.atMs)}`) ?? [],
    };
  } finally {
    await sensor.close();
    await other?.close();
    link.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

const replayFile = fileURLToPath(new URL('../../../sensor/testing/replay.ts', import.meta.url));
