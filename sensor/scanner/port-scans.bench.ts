/**
 * What port scans cost, with real nmap and guests in network namespaces, against the bars of `docs/port-scans.md`:
 *
 * - `nmap`: a full scan of a guest with ten services beside the same phases typed by hand, in pairs;
 * - `silent`: a full scan of a guest that drops everything;
 * - `hourly`: the common scans of 40 guests by the scan service;
 * - `pressure`: a full scan by the scan service while the host is overloaded again and again.
 *
 * `BENCH_SCANS=nmap,hourly` chooses among them; all together take 45 minutes. On a machine that is busy with other programs
 * `BENCH_HOURLY_LIMIT=none` keeps its load from pausing the hourly scans, which run beside it then, and `BENCH_PRESSURE=disk` fills
 * the sensor's disk in place of loading the CPUs. Needs root, nmap, iproute2 and nftables.
 */
import { randomUUID } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { ScanResult } from '#contracts/sensor-api/port-scans.ts';
import { bridgeName, type GuestKind, hostAddress, openScanHosts } from '#sensor/testing/scan-hosts.ts';
import {
  type PlannedScans,
  planTargets,
  runBareNmap,
  scanByCommand,
  startPlannedScans,
} from '#sensor/testing/scan-runs.ts';
import { requireTools, spawnTool } from '#sensor/testing/tool-link.ts';
import { discoveryArguments, identificationArguments } from './nmap-arguments.ts';

export const name = 'port-scans';

type Report = (line: string) => void;

const parts = { nmap: besideNmap, silent: silentGuest, hourly: hourlyScans, pressure: underPressure };
const pairs = Number(process.env.BENCH_PAIRS ?? 3);
/** The specification's limits (NET-8.4). */
const pressure = { cpuPercent: 85, cpuWaitPercent: 10 };
const noCpuPressure = { cpuPercent: 200, cpuWaitPercent: 200 };
const guests = 40;
const pausesWanted = 6;
/** How long the load lasts after scans are paused, and how long scans run in between. */
const heldMs = 10_000;
const runningMs = 10_000;
/** Packets that were under way when a pause began. */
const underWayMs = 250;

export async function run(report: Report): Promise<void> {
  try {
    requireTools({ ip: 'iproute2', nmap: 'nmap', nft: 'nftables', openssl: 'openssl' });
  } catch (error) {
    report((error as Error).message);
    return;
  }
  const chosen = process.env.BENCH_SCANS?.split(',') ?? Object.keys(parts);
  for (const [part, measure] of Object.entries(parts)) {
    if (!chosen.includes(part)) continue;
    const before = loadavg()[0]!.toFixed(1);
    await measure((line) => report(`${part}: ${line}`));
    report(`${part}: load ${before} before, ${loadavg()[0]!.toFixed(1)} after`);
  }
}

async function besideNmap(report: Report): Promise<void> {
  const hosts = await openScanHosts(['open']);
  const [address] = hosts.addresses as [string];
  const task = { address, interfaceName: bridgeName, sourceAddress: hostAddress };
  try {
    const ours: number[] = [];
    const theirs: number[] = [];
    let bare: string[][] = [];
    const scan = async () => {
      const { seconds, steps, findings } = await scanByCommand(hosts, address);
      const identified = findings.services.filter(({ method }) => method === 'probed').length;
      const state = `${findings.state}, ${identified} of ${findings.services.length} services identified`;
      report(`scan ${seconds.toFixed(1)} s (${describe(steps)}); ${state}`);
      ours.push(seconds);
      const portsOf = (wanted: string) =>
        findings.services.filter(({ transport }) => transport === wanted).map(({ port }) => port);
      bare = [
        discoveryArguments(task, 'full', 'tcp'),
        discoveryArguments(task, 'full', 'udp'),
        identificationArguments(task, 'tcp', portsOf('tcp')),
        identificationArguments(task, 'udp', portsOf('udp')),
      ];
    };
    const type = async () => {
      const seconds = await runBareNmap(hosts, bare);
      theirs.push(seconds.reduce((sum, one) => sum + one, 0));
      report(`nmap ${theirs.at(-1)!.toFixed(1)} s (${seconds.map((one) => one.toFixed(1)).join(', ')})`);
    };
    for (let pair = 0; pair < pairs; pair += 1) {
      // Which of them is first changes; the ports to identify are known from the first scan on.
      if (pair % 2 === 0) await scan();
      await type();
      if (pair % 2 === 1) await scan();
    }
    const ratio = middle(ours.map((seconds, i) => seconds / theirs[i]!));
    report(
      `median ${middle(ours).toFixed(1)} s, bare nmap ${middle(theirs).toFixed(1)} s, ratio ${ratio.toFixed(3)} (bar 1.05)`,
    );
  } finally {
    await hosts.close();
  }
}

async function silentGuest(report: Report): Promise<void> {
  const hosts = await openScanHosts(['silent']);
  try {
    const { seconds, steps, findings } = await scanByCommand(hosts, hosts.addresses[0]!);
    const said = `${findings.state}, ${findings.packets} packets (${describe(steps)})`;
    report(`full scan ${(seconds / 60).toFixed(2)} minutes, ${said} (bar 12 minutes)`);
  } finally {
    await hosts.close();
  }
}

async function hourlyScans(report: Report): Promise<void> {
  const kinds = Array.from({ length: guests }, (_, i): GuestKind => (i % 4 === 3 ? 'firewalled' : 'open'));
  const hosts = await openScanHosts(kinds);
  const limit = process.env.BENCH_HOURLY_LIMIT;
  const limits =
    limit === undefined ? pressure : { cpuPercent: Number(limit), cpuWaitPercent: Number(limit) };
  const plan = { targets: planTargets(hosts.addresses), requests: [] };
  const scans = await startPlannedScans(hosts, plan, limits);
  try {
    const results = await until(scans, () => {
      const all = resultsOf(scans);
      return all.length >= guests ? all : null;
    });
    const took = results.map((one) => Date.parse(one.finished_at) - Date.parse(one.started_at));
    const end = Math.max(...results.map(({ finished_at: at }) => Date.parse(at)));
    const begin = Math.min(...results.map(({ started_at: at }) => Date.parse(at)));
    const complete = results.filter(({ state }) => state === 'complete').length;
    report(
      `${guests} guests in ${((end - begin) / 60_000).toFixed(2)} minutes (bar 15); a scan median ${(middle(took) / 1000).toFixed(1)} s, longest ${(Math.max(...took) / 1000).toFixed(1)} s; ${complete} complete`,
    );
    const held = scans.states.filter(({ why, paused }) => paused !== null || /pressure/.test(why ?? ''));
    report(`paused ${describePauses(results)}; the host was too busy for ${held.length} s`);
  } finally {
    await scans.close();
    await hosts.close();
  }
}

async function underPressure(report: Report): Promise<void> {
  const hosts = await openScanHosts(['open']);
  const targets = planTargets(hosts.addresses);
  const requests = [{ scan_request_id: randomUUID(), target_id: targets[0]!.target_id }];
  const kind = process.env.BENCH_PRESSURE === 'disk' ? 'disk' : 'cpu';
  const limits = kind === 'cpu' ? pressure : noCpuPressure;
  const scans = await startPlannedScans(hosts, { targets, requests }, limits);
  const samples: { fromMs: number; toMs: number; packets: number }[] = [];
  const sampler = setInterval(() => {
    const fromMs = Date.now();
    samples.push({ fromMs, packets: hosts.received(0), toMs: Date.now() });
  }, 1000);
  const finished = () => resultsOf(scans).find(({ profile }) => profile === 'full') ?? null;
  const isPaused = () => scans.states.at(-1)?.paused === kind;
  try {
    await until(scans, () => scans.reports.length > 0 || null);
    for (let pause = 0; pause < pausesWanted && finished() === null; pause += 1) {
      const stop = kind === 'cpu' ? loadCpus() : fillDisk(scans.stateDirectory);
      await until(scans, () => isPaused() || finished());
      await wait(heldMs);
      stop();
      await until(scans, () => !isPaused() || finished());
      await wait(runningMs);
    }
    const result = await until(scans, finished);
    const sent = (result.pauses ?? []).map(({ started_at: from, ended_at: to }) => {
      const inside = samples.filter(
        ({ fromMs, toMs }) => fromMs > Date.parse(from) + underWayMs && toMs < Date.parse(to),
      );
      return inside.length > 1 ? inside.at(-1)!.packets - inside[0]!.packets : 'not seen';
    });
    const minutes = (Date.parse(result.finished_at) - Date.parse(result.started_at)) / 60_000;
    report(
      `full scan ${minutes.toFixed(1)} minutes, ${result.state} (bar 60 minutes, 5 pauses); paused ${describePauses([result])}`,
    );
    report(`packets that reached the guest in each pause: ${sent.join(', ')} (bar 0)`);
  } finally {
    clearInterval(sampler);
    await scans.close();
    await hosts.close();
  }
}

/** As many busy programs as CPUs. Returns what ends them. */
function loadCpus(): () => void {
  const load = Array.from({ length: availableParallelism() }, () =>
    spawnTool([process.execPath, '-e', 'for (;;);']),
  );
  return () => {
    for (const child of load) child.kill('SIGKILL');
  };
}

/** Leaves less than 1 GiB. Returns what makes room again. */
function fillDisk(folder: string): () => void {
  const file = join(folder, 'fill');
  writeFileSync(file, Buffer.alloc(512 << 20));
  return () => rmSync(file);
}

/** Looks twice a second. Throws after an hour. */
async function until<T>(scans: PlannedScans, look: () => T | null | false): Promise<T> {
  for (let turn = 0; turn < 7200; turn += 1) {
    const found = look();
    if (found !== null && found !== false) return found;
    await wait(500);
  }
  throw new Error(`not within an hour: ${JSON.stringify(scans.states.at(-1))}`);
}

function resultsOf(scans: PlannedScans): ScanResult[] {
  return scans.reports.filter((one): one is ScanResult => one.kind === 'result');
}

function describePauses(results: readonly ScanResult[]): string {
  const all = results.flatMap(({ pauses = [] }) => pauses);
  const seconds = all.map((one) => (Date.parse(one.ended_at) - Date.parse(one.started_at)) / 1000);
  const sum = seconds.reduce((total, one) => total + one, 0);
  const reasons = [...new Set(all.map(({ reason }) => reason))].join(', ');
  return `${all.length} times, ${sum.toFixed(0)} s in all${reasons === '' ? '' : `, for ${reasons}`}`;
}

function describe(steps: ReadonlyMap<string, number>): string {
  return [...steps].map(([step, seconds]) => `${step} ${seconds.toFixed(1)}`).join(', ');
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}
