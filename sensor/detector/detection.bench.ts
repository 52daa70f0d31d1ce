/**
 * Compares how fast a running sensor and FastNetMon decide on the same floods: live on one veth pair, at the same time, with
 * the same thresholds and the same clock. Needs root and Debian's `fastnetmon`; installs nothing.
 *
 * Both capture the interface themselves. The sensor's time is the one at which the incident lies in its spool, FastNetMon's the
 * one of its call of the notify script; both count from the moment before the first packet was sent. Each flood has a target
 * of its own, so that none waits for the end of another; a flood whose rate a busy machine did not keep is repeated.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { dividedThresholds, type FloodClass } from '#sensor/testing/attack-traffic.ts';
import { startFastNetMon, startSensor } from '#sensor/testing/live-programs.ts';
import type { PacedOrder, PacedReport } from '#sensor/testing/paced-flood.ts';
import {
  insideInterface,
  insidePrefixes,
  openToolLink,
  outsideInterface,
  requireTools,
  type ToolLink,
  toolPath,
} from '#sensor/testing/tool-link.ts';

export const name = 'detection';

const rates = [1.1, 1.5, 2, 5, 10] as const;
const perRate = Number(process.env.BENCH_FLOODS ?? 12);
/** Lower thresholds, so that a sender in this program keeps ten times each of them. */
const divisor = 20;
const thresholds = dividedThresholds(divisor);
const { pps, syn_pps: synPps, udp_pps: udpPps, icmp_pps: icmpPps } = thresholds.inbound;

/** Classes for which both have a threshold. */
const floods: readonly { class: FloodClass; version: 4 | 6; threshold: number }[] = [
  { class: 'syn_flood', version: 4, threshold: synPps },
  { class: 'udp_flood', version: 4, threshold: udpPps },
  { class: 'icmp_flood', version: 4, threshold: icmpPps },
  { class: 'protocol_flood', version: 4, threshold: pps },
  { class: 'syn_flood', version: 6, threshold: synPps },
  { class: 'udp_flood', version: 6, threshold: udpPps },
];

/** FastNetMon's average of five seconds needs 12 s at 1.1 times. */
const longestMs = 25_000;
/** No flood is shorter. */
const shortestMs = 3000;
const pauseMs = 1000;
/** Share of the packets that a machine may leave unsent. */
const unsentMax = 0.03;
const repeatsMax = 10;

/** The sender and both programs run before what else a busy machine does. */
const first = ['nice', '-n', '-20'];
const node = [process.execPath, '--disable-warning=ExperimentalWarning'];
/** Averages and windows of both fill first. */
const settleMs = 8000;

interface Taken {
  ours: number | null;
  theirs: number | null;
}

export async function run(report: (line: string) => void): Promise<void> {
  try {
    requireTools({ ip: 'iproute2', fastnetmon: 'fastnetmon' });
  } catch (error) {
    report((error as Error).message);
    return;
  }
  const loadBefore = loadavg()[0]!.toFixed(1);
  const folder = mkdtempSync(join(tmpdir(), 'svc-detection-'));
  const link = openToolLink();
  const side = { words: [...link.inside, ...first], interfaceName: insideInterface, folder };
  const scope = { prefixes: insidePrefixes, thresholds };
  const other = startFastNetMon(side, scope);
  const own = startSensor(side, scope);
  const sender = startSender(link);
  try {
    await Promise.all([own.ready, other.ready]);
    await wait(settleMs);
    let number = 0;
    let repeated = 0;
    for (const ratio of rates) {
      const all: Taken[] = [];
      for (let i = 0; i < perRate; i += 1) {
        const shape = floods[i % floods.length]!;
        for (let attempt = 0; ; attempt += 1) {
          number += 1;
          const taken = await measure({ own, sender, other, shape, ratio, number });
          if (taken === null && attempt < repeatsMax) {
            repeated += 1;
            continue;
          }
          if (taken === null) throw new Error('The machine is too busy: a flood did not keep its rate.');
          all.push(taken);
          if (process.env.BENCH_EACH)
            report(`${ratio} ${shape.class} IPv${shape.version}: ${taken.ours} and ${taken.theirs} ms`);
          break;
        }
      }
      report(
        `${ratio} times, ${all.length} floods: sensor ${summary(all.map(({ ours }) => ours))}; FastNetMon ${summary(all.map(({ theirs }) => theirs))}`,
      );
    }
    report(
      `${repeated} floods were repeated; load ${loadBefore} before, ${loadavg()[0]!.toFixed(1)} after; FastNetMon ${other.version}`,
    );
  } finally {
    sender.close();
    await own.close();
    await other.close();
    link.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Median and worst, and how many were not decided at all. */
function summary(times: readonly (number | null)[]): string {
  const decided = times.filter((time) => time !== null).toSorted((a, b) => a - b);
  const missed = times.length - decided.length;
  const none = missed > 0 ? `, ${missed} not within ${longestMs / 1000} s` : '';
  if (decided.length === 0) return `none within ${longestMs / 1000} s`;
  const text = (ms: number) => `${(ms / 1000).toFixed(2)} s`;
  return `median ${text(decided[decided.length >> 1]!)}, worst ${text(decided.at(-1)!)}${none}`;
}

interface Measured {
  sender: ReturnType<typeof startSender>;
  own: ReturnType<typeof startSensor>;
  other: ReturnType<typeof startFastNetMon>;
  shape: (typeof floods)[number];
  ratio: number;
  number: number;
}

/** One flood. Null when the machine did not keep its rate. */
async function measure(given: Measured): Promise<Taken | null> {
  const { own, sender, other, shape, ratio, number } = given;
  const host = number + 9;
  const target = shape.version === 4 ? `192.0.2.${host}` : `2001:db8:7::${host.toString(16)}`;
  const perSecond = shape.threshold * ratio;
  // At any moment of a second.
  await wait(Math.random() * 1000);
  const order = { class: shape.class, version: shape.version, target, perSecond };
  const startedAt = await sender.begin(order);
  const since = (at: number | null) => (at === null ? null : at - startedAt);
  const look = () => ({ ours: since(own.decidedAt(target)), theirs: since(other.bannedAt(target)) });
  let taken = look();
  for (;;) {
    taken = look();
    const elapsed = Date.now() - startedAt;
    const isDecided = taken.ours !== null && taken.theirs !== null && elapsed > shortestMs;
    if (isDecided || elapsed > longestMs) break;
    await wait(20);
  }
  const { sent, seconds } = await sender.end();
  // Averages of both end with the flood before.
  await wait(pauseMs);
  return (sent.at(-1) ?? 0) >= perSecond * seconds * (1 - unsentMax) ? taken : null;
}

function startSender(link: ToolLink) {
  const file = fileURLToPath(new URL('../testing/paced-flood.ts', import.meta.url));
  const [tool, ...words] = [...link.outside, ...first, ...node, file, outsideInterface];
  const child: ChildProcess = spawn(tool!, words, {
    env: { ...process.env, PATH: toolPath },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value as string) as PacedReport;
  return {
    /** Resolves with the time of the first packet. */
    async begin(order: PacedOrder): Promise<number> {
      child.stdin!.write(`${JSON.stringify(order)}\n`);
      return ((await next()) as { startedAt: number }).startedAt;
    },
    async end() {
      child.stdin!.write('stop\n');
      return (await next()) as { sent: number[]; seconds: number };
    },
    close: () => child.kill('SIGKILL'),
  };
}
