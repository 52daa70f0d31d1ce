/**
 * Compares how fast a running sensor and FastNetMon decide on the same floods: live on one veth pair, at the same time, with
 * the same thresholds and the same clock. Needs root and Debian's `fastnetmon`; installs nothing.
 *
 * Both capture the interface themselves. The sensor's time is the one at which the incident lies in its spool, FastNetMon's the
 * one of its call of the notify script; both count from the moment before the first packet was sent. Each flood has a target
 * of its own, so that none waits for the end of another; a flood whose rate a busy machine did not keep is repeated.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { canonicalAddress } from '#common/ip/index.ts';
import { dividedThresholds, type FloodClass } from '#sensor/testing/attack-traffic.ts';
import type { PacedOrder, PacedReport } from '#sensor/testing/paced-flood.ts';
import {
  collect,
  ended,
  insideInterface,
  insidePrefixes,
  openToolLink,
  outsideInterface,
  requireTools,
  spawnTool,
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
  const other = startFastNetMon(link, folder);
  const own = startSensor(link, folder);
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

/** The sensor's capture and detection, with a plan that has the thresholds. */
function startSensor(link: ToolLink, folder: string) {
  const file = fileURLToPath(new URL('../testing/live-detector.ts', import.meta.url));
  const state = join(folder, 'state');
  mkdirSync(state);
  const plan = {
    plan_version: 1,
    application_usage_version: 1,
    application_protocol_version: 1,
    local_cidrs: [...insidePrefixes],
    protected_targets: [],
    detection_version: 1,
    detection: { additional_cidrs: [...insidePrefixes], ...thresholds, groups: [], drills: [] },
  };
  const child = spawnTool([
    ...link.inside,
    ...first,
    ...node,
    file,
    insideInterface,
    state,
    JSON.stringify(plan),
  ]);
  const said = collect(child);
  const begin = async () => {
    while (!said().includes('"listening"')) {
      if (child.exitCode !== null) throw new Error(`the sensor: ${said()}`);
      await wait(50);
    }
  };
  return {
    ready: begin(),
    decidedAt(target: string): number | null {
      const line = said()
        .split('\n')
        .find((one) => one.includes(`"target":"${target}"`));
      return line === undefined ? null : (JSON.parse(line) as { atMs: number }).atMs;
    },
    async close() {
      child.kill('SIGKILL');
      await ended(child);
    },
  };
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

/** FastNetMon of Debian with the same thresholds, and otherwise the settings that its package brings. */
function startFastNetMon(link: ToolLink, folder: string) {
  const file = (entry: string) => join(folder, entry);
  const calls = file('calls');
  writeFileSync(file('networks'), '192.0.2.0/24\n2001:db8:7::/48\n');
  writeFileSync(file('whitelist'), '');
  writeFileSync(calls, '');
  writeFileSync(file('notify.sh'), `#!/bin/sh\necho "$(date +%s%3N) $1 $2 $3 $4" >> ${calls}\n`);
  chmodSync(file('notify.sh'), 0o755);
  const own: Record<string, string | number> = {
    disable_usage_report: 'on',
    networks_list_path: file('networks'),
    white_list_path: file('whitelist'),
    notify_script_path: file('notify.sh'),
    pid_path: file('pid'),
    cli_stats_file_path: file('stats'),
    cli_stats_ipv6_file_path: file('stats6'),
    enable_api: 'off',
    prometheus: 'off',
    monitor_local_ip_addresses: 'off',
    mirror_afpacket: 'on',
    interfaces: insideInterface,
    ban_for_bandwidth: 'off',
    threshold_pps: pps,
    ban_for_tcp_pps: 'on',
    threshold_tcp_pps: synPps,
    ban_for_udp_pps: 'on',
    threshold_udp_pps: udpPps,
    ban_for_icmp_pps: 'on',
    threshold_icmp_pps: icmpPps,
  };
  const lines = readFileSync('/etc/fastnetmon.conf', 'utf8').split('\n');
  const isOwn = (line: string) => (line.split('=')[0] ?? '').trim() in own;
  const settings = Object.entries(own).map(([key, value]) => `${key} = ${value}`);
  writeFileSync(file('conf'), [...lines.filter((line) => !isOwn(line)), ...settings, ''].join('\n'));
  const options = ['--configuration_file', file('conf'), '--log_file', file('log'), '--disable_pid_logic'];
  const child = spawnTool([...link.inside, ...first, 'fastnetmon', ...options]);
  const said = collect(child);
  const log = () => (existsSync(file('log')) ? readFileSync(file('log'), 'utf8') : '');
  const begin = async () => {
    while (!log().includes('Start AF_PACKET worker process')) {
      if (child.exitCode !== null) throw new Error(`fastnetmon: ${said()} ${log()}`);
      await wait(50);
    }
  };
  return {
    ready: begin(),
    version: spawnSync('fastnetmon', ['--version'], { encoding: 'utf8' }).stdout.trim().split('\n').at(-1),
    /** When its script was called for the target, unix milliseconds. */
    bannedAt(target: string): number | null {
      const call = readFileSync(calls, 'utf8')
        .split('\n')
        .find((line) => canonicalAddress(line.split(' ')[1] ?? '') === target && line.endsWith(' ban'));
      return call ? Number(call.split(' ')[0]) : null;
    },
    async close() {
      child.kill('SIGKILL');
      await ended(child);
    },
  };
}
