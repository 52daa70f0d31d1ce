/**
 * Compares who counts the same flood of an interface in one run: the program in the kernel, the ring with the whole engine, `tcpdump -w`, which
 * only stores, and `nfpcapd` (Debian's nfdump), which makes flows. The flood comes from inside the kernel as fast as one processor makes it, to
 * 4,096 addresses. Beside it 20 TLS connections a second of other addresses begin, each with a name of its own: the ring has to keep them.
 *
 * What the kernel's program costs is the sender's processor time beside it less that without it: it runs in the sender's place. Needs
 * root.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openFrameSender } from '#sensor/testing/frame-sender.ts';
import { clientHello, ethernet, reverse, Tcp, tcp } from '#sensor/testing/frames.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { countBriefly } from './attachment.ts';

export const name = 'kernel-counting';

const rounds = 3;
const packets = Number(process.env.BENCH_PACKETS ?? 3_000_000);
const ringMiB = 128;
const local = { prefixes: ['10.1.0.0/20'], addresses: [] };
const flood = fileURLToPath(new URL('../testing/kernel-flood.ts', import.meta.url));
const probe = fileURLToPath(new URL('../testing/capture-probe.ts', import.meta.url));
const node = [process.execPath, '--disable-warning=ExperimentalWarning'] as const;

interface Sent {
  seconds: number;
  cpuSeconds: number;
}

interface Measured {
  /** Nanoseconds of processor time of an offered packet: of the receiver, or in the sender's place. */
  receiver: number;
  sender: number;
  lost: number;
  mpps: number;
  /** Names of the connections beside the flood, and how many of them it has. */
  names?: { begun: number; kept: number };
}

const connectionsPerSecond = 20;

/** Runs the benchmark. Reports medians of alternating rounds. */
export async function run(report: (line: string) => void): Promise<void> {
  const [here, there] = [uniqueName(), uniqueName()];
  execFileSync('ip', ['link', 'add', here, 'type', 'veth', 'peer', 'name', there]);
  const cache = mkdtempSync(join(tmpdir(), 'svc-bench-'));
  try {
    for (const end of [here, there]) execFileSync('ip', ['link', 'set', end, 'arp', 'off', 'up']);
    const all: Record<'alone' | 'kernel' | 'ring' | 'file' | 'flows', Measured[]> = {
      ...{ alone: [], kernel: [], ring: [], file: [], flows: [] },
    };
    const hasFlows = spawnSync('nfpcapd', ['-h']).error === undefined;
    for (let round = 0; round < rounds; round += 1) {
      all.alone.push(measured(await send(here), 0, 0));
      all.kernel.push(await measureKernel(here));
      all.ring.push(await measureRing({ here, there }, cache));
      all.file.push(await measureFile(here));
      if (hasFlows) all.flows.push(await measureFlows(here, cache));
    }
    const base = median(all.alone, 'sender');
    const line = (title: string, rows: Measured[]) =>
      report(
        `${title.padEnd(28)} sender ${median(rows, 'sender').toFixed(0)} ns a packet (${(median(rows, 'sender') - base).toFixed(0)} more), ` +
          `receiver ${median(rows, 'receiver').toFixed(0)} ns, lost ${rows.map((row) => row.lost).join(', ')} of ` +
          `${packets.toLocaleString('en-US')} at ${median(rows, 'mpps').toFixed(2)} million/s`,
      );
    line('without a receiver', all.alone);
    line('kernel, 4,096 addresses', all.kernel);
    line('ring, whole engine', all.ring);
    line('tcpdump -w /dev/null', all.file);
    if (hasFlows) line('nfpcapd', all.flows);
    else report('nfpcapd is not installed');
    const sum = (what: 'begun' | 'kept') => all.ring.reduce((total, { names }) => total + names![what], 0);
    const share = ((sum('kept') / sum('begun')) * 100).toFixed(2);
    report(
      `the ring kept ${sum('kept')} of ${sum('begun')} names (${share} %) of TLS connections beside the flood`,
    );
  } finally {
    spawnSync('ip', ['link', 'del', here]);
    rmSync(cache, { recursive: true, force: true });
  }
}

function median(rows: readonly Measured[], field: 'receiver' | 'sender' | 'mpps'): number {
  return rows.map((row) => row[field]).sort((a, b) => a - b)[rows.length >> 1]!;
}

const measured = ({ seconds, cpuSeconds }: Sent, receiverSeconds: number, lost: number): Measured => ({
  receiver: (receiverSeconds * 1e9) / packets,
  sender: (cpuSeconds * 1e9) / packets,
  lost,
  mpps: packets / seconds / 1e6,
});

async function send(here: string): Promise<Sent> {
  const child = spawn(node[0], [node[1], flood, here, String(packets)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (piece) => {
    said += piece;
  });
  await once(child, 'close');
  return JSON.parse(said) as Sent;
}

async function measureKernel(here: string): Promise<Measured> {
  // One minute of its own, which began a second ago, and in which the flood is.
  const minute = Math.floor(Date.now() / 60_000);
  const { counter, end } = countBriefly(here, (made) => {
    made.setLocal(local, false);
    made.beat(BigInt(minute) * 60_000_000_000n + 1_000_000_000n - process.hrtime.bigint());
  });
  try {
    const sent = await send(here);
    const { totals, hosts } = counter.readMinute(minute * 60);
    const ofHosts = [...hosts.values()].reduce((sum, host) => sum + host.packets, 0);
    return measured(sent, 0, packets - Math.min(totals.packets, ofHosts));
  } finally {
    end();
    counter.close();
  }
}

async function measureRing(
  { here, there }: { here: string; there: string },
  cache: string,
): Promise<Measured> {
  const protects = { addresses: [], prefixes: local.prefixes };
  const options = JSON.stringify({ method: 'ring', ringMiB, name: here, protects });
  const child = spawn(node[0], [node[1], probe, 'until-told', options], {
    env: { ...process.env, NODE_COMPILE_CACHE: cache },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let said = '';
  child.stdout.on('data', (text) => {
    said += text;
  });
  await once(child.stdout, 'data');
  const connections = beginConnections(there);
  const sent = await send(here);
  const { names, frames } = connections.end();
  await wait(1500);
  child.stdin.write('stop\n');
  await once(child, 'close');
  const { minutes, cpuMs } = JSON.parse(said.slice(said.indexOf('\n'))) as {
    minutes: { totals: { packets: number }; usage: { name: string }[] }[];
    cpuMs: number;
  };
  const counted = minutes.reduce((sum, minute) => sum + minute.totals.packets, 0);
  const found = new Set(minutes.flatMap(({ usage }) => usage.map(({ name }) => name)));
  return {
    ...measured(sent, cpuMs / 1000, packets + frames - counted),
    names: { begun: names.length, kept: names.filter((name) => found.has(name)).length },
  };
}

/** Openings with a name, some data and an end, of addresses that are not flooded. */
function beginConnections(there: string): { end(): { names: string[]; frames: number } } {
  const sender = openFrameSender(there);
  const names: string[] = [];
  let frames = 0;
  const timer = setInterval(() => {
    const name = `name-${names.length}.example`;
    const ends = { from: '10.9.1.7', fromPort: 20_000 + names.length, to: '198.51.100.7', toPort: 443 };
    names.push(name);
    const [push, data] = [Tcp.push | Tcp.ack, new Uint8Array(900)];
    const segments: [typeof ends, number, Uint8Array][] = [
      ...[
        [ends, Tcp.syn, nothing],
        [reverse(ends), Tcp.syn | Tcp.ack, nothing],
      ],
      ...[
        [ends, Tcp.ack, nothing],
        [ends, push, clientHello({ host: name })],
      ],
      ...[
        [reverse(ends), push, data],
        [ends, push, data],
      ],
      ...[
        [ends, Tcp.fin | Tcp.ack, nothing],
        [reverse(ends), Tcp.fin | Tcp.ack, nothing],
      ],
    ] as [typeof ends, number, Uint8Array][];
    const next = new Map<number, number>();
    for (const [of, flags, payload] of segments) {
      const sequence = next.get(of.fromPort) ?? 1;
      sender.send(Buffer.from(ethernet(tcp(of, flags, sequence, payload))));
      next.set(of.fromPort, sequence + payload.length + (flags & (Tcp.syn | Tcp.fin) ? 1 : 0));
      frames += 1;
    }
  }, 1000 / connectionsPerSecond);
  return {
    end() {
      clearInterval(timer);
      sender.close();
      return { names, frames };
    },
  };
}

const nothing = new Uint8Array();

async function measureFile(here: string): Promise<Measured> {
  const words = ['-i', here, '-n', '-Z', 'root', '-B', String(ringMiB * 1024), '-w', '/dev/null'];
  const child: ChildProcess = spawn('tcpdump', words);
  let said = '';
  child.stderr!.on('data', (text) => {
    said += text;
  });
  await once(child.stderr!, 'data');
  const sent = await send(here);
  await wait(1500);
  const cpuSeconds = processorSeconds(child);
  child.kill('SIGINT');
  await once(child, 'close');
  return measured(sent, cpuSeconds, packets - Number(/(\d+) packets captured/.exec(said)?.[1]));
}

async function measureFlows(here: string, cache: string): Promise<Measured> {
  const folder = mkdtempSync(join(cache, 'flows-'));
  const child = spawn('nfpcapd', ['-i', here, '-b', String(ringMiB), '-w', folder], { stdio: 'ignore' });
  // It says nothing when it listens.
  await wait(1000);
  const sent = await send(here);
  await wait(1500);
  const cpuSeconds = processorSeconds(child);
  child.kill('SIGTERM');
  await once(child, 'close');
  const said = execFileSync('nfdump', ['-R', folder, '-I', '-q'], { encoding: 'utf8' });
  return measured(sent, cpuSeconds, packets - Number(/^Packets: (\d+)/m.exec(said)?.[1]));
}

/** Of all threads. Fields 14 and 15, after a name that may contain spaces. */
function processorSeconds({ pid }: ChildProcess): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}
