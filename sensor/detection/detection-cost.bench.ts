/**
 * Compares what a packet costs a whole running sensor with detection and without: two sensors on one end of a veth pair, each
 * with a ring of its own, see the same packets at the same time. Needs root.
 *
 * Processor time is of each process with all its threads: ring, engine, counters, and the decisions on the main thread. Tables are
 * full before it is taken. Both have the same plan, so that they count the same local addresses.
 *
 * `BENCH_CASE` is a part of the names of the wanted cases, `BENCH_ROUNDS` how often each is measured, `BENCH_WARM_UP` and `BENCH_SECONDS`
 * how long traffic lasts before and while it is. V8 compiles for minutes, on threads of its own, what runs once a second.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const name = 'detection-cost';

const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const warmUpSeconds = Number(process.env.BENCH_WARM_UP ?? 25);
const measuredSeconds = Number(process.env.BENCH_SECONDS ?? 10);
const ringMiB = 128;
/** Packets are handed over in blocks, and windows close after their second. */
const settleMs = 1500;
const sender = fileURLToPath(new URL('../testing/flood-sender.ts', import.meta.url));
const probe = fileURLToPath(new URL('../testing/capture-probe.ts', import.meta.url));
const node = [process.execPath, '--disable-warning=ExperimentalWarning'];

const one = { prefixes: [], addresses: ['192.0.2.1'] };
const many = {
  prefixes: [],
  addresses: Array.from({ length: 4096 }, (_, i) =>
    i < 255 ? `192.0.2.${i + 1}` : `10.77.${i >> 8}.${i & 255}`,
  ),
};
const wide = { prefixes: ['10.1.0.0/16'], addresses: [] };

/** Traffic of so many thousand packets a second. */
const cases = [
  ['ordinary traffic, 1 address protected', 'mixed', one, 160],
  ['ordinary traffic, 4,096 addresses', 'mixed', many, 160],
  ['flood of new flows on 16 addresses, 1 protected', 'flood', one, 80],
  ['flood of new flows on 16 addresses, 4,096 protected', 'flood', many, 80],
  ['flood over a /16, all of it protected', 'wide', wide, 80],
] as const;

interface Cost {
  /** Microseconds a packet. */
  cpu: number;
  lost: number;
}

export async function run(report: (line: string) => void): Promise<void> {
  const here = `svcd-${process.pid}a`;
  const there = `svcd-${process.pid}b`;
  try {
    for (const ns of [here, there]) spawnSync('ip', ['netns', 'add', ns]);
    spawnSync('ip', ['-n', here, 'link', 'add', 'va', 'type', 'veth', 'peer', 'name', 'vb', 'netns', there]);
    for (const [ns, end] of [
      [here, 'va'],
      [there, 'vb'],
    ] as const) {
      spawnSync('ip', [
        'netns',
        'exec',
        ns,
        'sh',
        '-c',
        `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`,
      ]);
      spawnSync('ip', ['-n', ns, 'link', 'set', end, 'up']);
    }
    for (const [title, traffic, scope, usualKpps] of cases) {
      const kpps = Number(process.env.BENCH_KPPS ?? usualKpps);
      if (!title.includes(process.env.BENCH_CASE ?? '')) continue;
      const pairs: { plain: Cost; detecting: Cost }[] = [];
      for (let round = 0; round < rounds; round += 1) {
        pairs.push(await measurePair({ here, there, traffic, kpps, scope, isPlainFirst: round % 2 === 0 }));
      }
      const ratio = middle(pairs.map(({ plain, detecting }) => detecting.cpu / plain.cpu));
      const without = middle(pairs.map(({ plain }) => plain.cpu));
      const lost = pairs.reduce((sum, { plain, detecting }) => sum + plain.lost + detecting.lost, 0);
      report(
        `${title.padEnd(52)} ${ratio.toFixed(2)} of a sensor without (${without.toFixed(2)} µs a packet, ${kpps} kpps, ${lost} lost, load ${loadavg()[0]!.toFixed(1)})`,
      );
    }
  } finally {
    for (const ns of [here, there]) spawnSync('ip', ['netns', 'del', ns]);
  }
}

function middle(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

interface Pair {
  here: string;
  there: string;
  traffic: string;
  kpps: number;
  scope: { prefixes: readonly string[]; addresses: readonly string[] };
  isPlainFirst: boolean;
}

/** Both sensors, with the packets of one sender. */
async function measurePair({ here, there, traffic, kpps, scope, isPlainFirst }: Pair) {
  const start = async (isDetecting: boolean) => startSensor(here, scope, isDetecting);
  const first = await start(!isPlainFirst);
  const second = await start(isPlainFirst);
  const warmUp = kpps * 1000 * warmUpSeconds;
  const measured = kpps * 1000 * measuredSeconds;
  await offer(there, warmUp, kpps, traffic);
  await wait(settleMs);
  for (const sensor of [first, second]) sensor.child.stdin!.write('mark\n');
  await wait(50);
  await offer(there, measured, kpps, traffic);
  await wait(settleMs);
  for (const sensor of [first, second]) sensor.child.stdin!.write('stop\n');
  const [one, other] = [await first.cost(warmUp, measured), await second.cost(warmUp, measured)];
  return isPlainFirst ? { plain: one, detecting: other } : { plain: other, detecting: one };
}

async function startSensor(here: string, protects: Pair['scope'], isDetecting: boolean) {
  const options = JSON.stringify({ method: 'ring', ringMiB, protects, isDetecting });
  const child: ChildProcess = spawn('ip', ['netns', 'exec', here, ...node, probe, 'until-told', options]);
  child.stderr!.pipe(process.stderr);
  let said = '';
  child.stdout!.on('data', (text) => {
    said += text;
  });
  const closed = once(child, 'close');
  await once(child.stdout!, 'data');
  return {
    child,
    async cost(warmUp: number, measured: number): Promise<Cost> {
      await closed;
      const { minutes, cpuMs } = JSON.parse(said.slice(said.indexOf('\n'))) as {
        minutes: { totals: { packets: number } }[];
        cpuMs: number;
      };
      const counted = minutes.reduce((sum, minute) => sum + minute.totals.packets, 0);
      return { cpu: (cpuMs * 1000) / measured, lost: warmUp + measured - counted };
    },
  };
}

async function offer(there: string, count: number, kpps: number, traffic: string): Promise<void> {
  const words = ['netns', 'exec', there, ...node, sender, 'vb', String(count), String(kpps), traffic];
  const child = spawn('ip', words);
  child.stderr.pipe(process.stderr);
  await once(child.stdout, 'data');
  child.stdin.write('go\n');
  await once(child, 'exit');
}
