/**
 * Compares live captures on a veth pair in one run: the sensor's ring with full analysis, `tcpdump -w`, which only
 * stores, and a `tcpdump -U` pipe into the same analysis. Needs root.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const name = 'live-capture';

/** Keep compiled code between rounds, as on a host where the sensor ran before. */
const cache = mkdtempSync(join(tmpdir(), 'svc-bench-'));
const rounds = 3;
const packets = 600_000;
/** A pipe handles a lower rate, which is enough to measure its cost. */
const ringMiB = 128;
const sender = fileURLToPath(new URL('../testing/flood-sender.ts', import.meta.url));
const probe = fileURLToPath(new URL('../testing/capture-probe.ts', import.meta.url));

interface Measured {
  /** Processor time of one offered packet, microseconds. */
  cpu: number;
  /** Packets that were sent but not counted. */
  lost: number;
  kpps: number;
  /** Not including the ring. */
  memoryMiB: number;
}

/** Runs the benchmark. Reports medians of alternating rounds, and the required ratios. */
export async function run(report: (line: string) => void): Promise<void> {
  const here = `svcb-${process.pid}a`;
  const there = `svcb-${process.pid}b`;
  const ip = (...words: string[]) => execFileSync('ip', words);
  try {
    for (const ns of [here, there]) ip('netns', 'add', ns);
    ip('-n', here, 'link', 'add', 'va', 'type', 'veth', 'peer', 'name', 'vb', 'netns', there);
    for (const [ns, end] of [
      [here, 'va'],
      [there, 'vb'],
    ] as const) {
      ip('netns', 'exec', ns, 'sh', '-c', `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`);
      ip('-n', ns, 'link', 'set', end, 'up');
    }
    const offered = Number(process.env.BENCH_KPPS ?? 0);
    const all: Record<'ring' | 'file' | 'pipe', Measured[]> = { ring: [], file: [], pipe: [] };
    for (let round = 0; round < rounds; round += 1) {
      all.file.push(await measureFile(here, there, offered));
      all.ring.push(await measureSensor(here, there, offered, 'ring'));
      all.pipe.push(await measureSensor(here, there, offered, 'tcpdump'));
    }
    const line = (title: string, rows: Measured[]) =>
      report(
        `${title.padEnd(34)} ${median(rows, 'cpu').toFixed(2)} µs a packet, lost ${rows.map((row) => row.lost).join(', ')} ` +
          `of ${packets.toLocaleString('en-US')} at ${median(rows, 'kpps').toFixed(0)} kpps, ${median(rows, 'memoryMiB').toFixed(0)} MiB`,
      );
    line('sensor, ring, full analysis', all.ring);
    line('tcpdump -w /dev/null', all.file);
    line('sensor behind a tcpdump -U pipe', all.pipe);
    const ratio = median(all.ring, 'cpu') / median(all.pipe, 'cpu');
    report(`the ring takes ${ratio.toFixed(2)} of the processor time of the pipe (limit 0.25)`);
  } finally {
    for (const ns of [here, there]) spawnSync('ip', ['netns', 'del', ns]);
    rmSync(cache, { recursive: true, force: true });
  }
}

function median(rows: readonly Measured[], field: keyof Measured): number {
  return rows.map((row) => row[field]).sort((a, b) => a - b)[rows.length >> 1]!;
}

/** Sends the same frames to the listener on `va`. Resolves with the rate. */
async function offer(there: string, kpps: number): Promise<number> {
  const words = ['netns', 'exec', there, process.execPath, '--disable-warning=ExperimentalWarning'];
  const child = spawn('ip', [...words, sender, 'vb', String(packets), String(kpps)]);
  child.stderr.pipe(process.stderr);
  await once(child.stdout, 'data');
  child.stdin.write('go\n');
  const [said] = await once(child.stdout, 'data');
  await once(child, 'exit');
  return (JSON.parse(String(said)) as { kpps: number }).kpps;
}

async function measureSensor(
  here: string,
  there: string,
  kpps: number,
  method: 'ring' | 'tcpdump',
): Promise<Measured> {
  const words = ['netns', 'exec', here, process.execPath, '--disable-warning=ExperimentalWarning'];
  const options = JSON.stringify({ method, ringMiB });
  const child = spawn('ip', [...words, probe, 'until-told', options], {
    env: { ...process.env, NODE_COMPILE_CACHE: cache },
  });
  child.stderr.pipe(process.stderr);
  let said = '';
  child.stdout.on('data', (text) => {
    said += text;
  });
  await once(child.stdout, 'data');
  const rate = await offer(there, kpps);
  await wait(1500);
  child.stdin.write('stop\n');
  await once(child, 'close');
  const probed = JSON.parse(said.slice(said.indexOf('\n'))) as {
    minutes: { totals: { packets: number } }[];
    cpuMs: number;
    memoryMiB: number;
  };
  const counted = probed.minutes.reduce((sum, minute) => sum + minute.totals.packets, 0);
  return {
    cpu: (probed.cpuMs * 1000) / packets,
    lost: packets - counted,
    kpps: rate,
    memoryMiB: probed.memoryMiB,
  };
}

async function measureFile(here: string, there: string, kpps: number): Promise<Measured> {
  const words = [
    'netns',
    'exec',
    here,
    'tcpdump',
    '-i',
    'va',
    '-n',
    '-Z',
    'root',
    '-B',
    String(ringMiB * 1024),
  ];
  const child: ChildProcess = spawn('ip', [...words, '-w', '/dev/null']);
  let said = '';
  child.stderr!.on('data', (text) => {
    said += text;
  });
  await once(child.stderr!, 'data');
  const rate = await offer(there, kpps);
  await wait(1500);
  // Fields 14 and 15, after a name that may contain spaces.
  const stat = readFileSync(`/proc/${child.pid}/stat`, 'utf8');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number);
  const memory = Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1]) / 1024;
  child.kill('SIGINT');
  await once(child, 'close');
  const received = Number(/(\d+) packets captured/.exec(said)?.[1]);
  return {
    cpu: ((user! + system!) * 10_000) / packets,
    lost: packets - received,
    kpps: rate,
    memoryMiB: Math.max(0, memory - ringMiB),
  };
}
