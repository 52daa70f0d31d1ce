/**
 * Compares what a packet costs a whole running sensor with detection and without, as the package installs it: the kernel counts. Two
 * sensors, each at a veth pair of its own, see the same packets at the same time, and change places with each round. Needs root.
 *
 * Processor time is of the capture thread (ring, engine, counters), of the main thread (what it decides is of each second, not of each
 * packet), and of all, in which V8's compilers are too. What the kernel's program takes is the sender's (`kernel-counting`). Both have the same plan, so that they count the same local addresses.
 *
 * `BENCH_CASE` is a part of the names of the wanted cases, `BENCH_ROUNDS` how often each is measured, `BENCH_WARM_UP` and `BENCH_SECONDS`
 * how long traffic lasts before and while it is. What is busy and ordinary is let go after ninety seconds, and V8 compiles for minutes, on
 * threads of its own, what runs once a second.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { preparePins } from '#sensor/kernel/attachment.ts';

export const name = 'detection-cost';

const rounds = Number(process.env.BENCH_ROUNDS ?? 3);
const warmUpSeconds = Number(process.env.BENCH_WARM_UP ?? 110);
const measuredSeconds = Number(process.env.BENCH_SECONDS ?? 10);
const ringMiB = 128;
/** Packets are handed over in blocks, and windows close after their second. */
const settleMs = 1500;
const sender = fileURLToPath(new URL('../testing/flood-sender.ts', import.meta.url));
const probe = fileURLToPath(new URL('../testing/capture-probe.ts', import.meta.url));
const node = [process.execPath, '--disable-warning=ExperimentalWarning'];

const ofTraffic = Array.from({ length: 200 }, (_, i) => [`192.0.2.${i + 1}`, `2001:db8:1::${i + 1}`]).flat();
const one = { prefixes: [], addresses: ['192.0.2.1'] };
/** All of the traffic's, and others. */
const many = {
  prefixes: [],
  addresses: [
    ...ofTraffic,
    ...Array.from({ length: 4096 - ofTraffic.length }, (_, i) => `10.77.${i >> 8}.${i & 255}`),
  ],
};
const wide = { prefixes: ['10.1.0.0/16'], addresses: [] };

/** Traffic of so many thousand packets a second. */
const cases = [
  ['ordinary traffic, 1 address protected', 'mixed', one, 40],
  ['ordinary traffic, 4,096 addresses', 'mixed', many, 40],
  ['flood of new flows on 16 addresses, 1 protected', 'flood', one, 40],
  ['flood of new flows on 16 addresses, 4,096 protected', 'flood', many, 40],
  ['flood over a /16, all of it protected', 'wide', wide, 40],
] as const;

interface Cost {
  /** Microseconds a packet: of the capture thread, and of the whole process. */
  engine: number;
  whole: number;
  /** Milliseconds of each second. */
  main: number;
  /** Packets that were not counted, and minutes in which the ring was full. */
  lost: number;
  fullMinutes: number;
}

export async function run(report: (line: string) => void): Promise<void> {
  const here = `svcd-${process.pid}a`;
  const there = `svcd-${process.pid}b`;
  const ip = (...words: string[]) => spawnSync('ip', words);
  try {
    for (const ns of [here, there]) ip('netns', 'add', ns);
    for (const i of [0, 1]) {
      ip('-n', here, 'link', 'add', `va${i}`, 'type', 'veth', 'peer', 'name', `vb${i}`, 'netns', there);
      for (const [ns, end] of [
        [here, `va${i}`],
        [there, `vb${i}`],
      ] as const) {
        const quiet = `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`;
        ip('netns', 'exec', ns, 'sh', '-c', quiet);
        ip('-n', ns, 'link', 'set', end, 'arp', 'off', 'up');
      }
    }
    for (const [title, traffic, scope, usualKpps] of cases) {
      const kpps = Number(process.env.BENCH_KPPS ?? usualKpps);
      if (!title.includes(process.env.BENCH_CASE ?? '')) continue;
      const pairs: { plain: Cost; detecting: Cost }[] = [];
      for (let round = 0; round < rounds; round += 1)
        pairs.push(await measurePair({ here, there, traffic, kpps, scope, isPlainFirst: round % 2 === 0 }));
      const ratioOf = (what: 'engine' | 'whole') =>
        middle(pairs.map(({ plain, detecting }) => detecting[what] / plain[what])).toFixed(3);
      const without = (what: 'engine' | 'main') => middle(pairs.map(({ plain }) => plain[what])).toFixed(2);
      const main = middle(pairs.map(({ detecting }) => detecting.main)).toFixed(2);
      const sum = (what: 'lost' | 'fullMinutes') =>
        pairs.reduce((total, { plain, detecting }) => total + plain[what] + detecting[what], 0);
      report(
        `${title.padEnd(52)} engine ${ratioOf('engine')} of one without (${without('engine')} µs a packet), main thread ${main} ms a second ` +
          `(${without('main')}), all threads ${ratioOf('whole')}; ${kpps} kpps, ${sum('lost')} lost, ring full in ` +
          `${sum('fullMinutes')} minutes, load ${loadavg()[0]!.toFixed(1)}`,
      );
    }
  } finally {
    for (const ns of [here, there]) ip('netns', 'del', ns);
    // The counters of what is gone go too.
    preparePins([], { uid: 0, gid: 0 });
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
  const sensors = [
    await startSensor({ here, name: 'va0', protects: scope, isDetecting: !isPlainFirst }),
    await startSensor({ here, name: 'va1', protects: scope, isDetecting: isPlainFirst }),
  ];
  // A veth takes no more than its queue has room for: what it took counts.
  const received = () =>
    ['va0', 'va1'].map((end) => {
      const file = `/sys/class/net/${end}/statistics/rx_packets`;
      return Number(spawnSync('ip', ['netns', 'exec', here, 'cat', file], { encoding: 'utf8' }).stdout);
    });
  const atStart = received();
  await offer(there, kpps * 1000 * warmUpSeconds, kpps, traffic);
  await wait(settleMs);
  const atMark = received();
  for (const { child } of sensors) child.stdin!.write('mark\n');
  await wait(50);
  await offer(there, kpps * 1000 * measuredSeconds, kpps, traffic);
  await wait(settleMs);
  const atEnd = received();
  for (const { child } of sensors) child.stdin!.write('stop\n');
  const costOf = (i: 0 | 1) => sensors[i]!.cost(atEnd[i]! - atStart[i]!, atEnd[i]! - atMark[i]!);
  const [one, other] = [await costOf(0), await costOf(1)];
  return isPlainFirst ? { plain: one, detecting: other } : { plain: other, detecting: one };
}

interface Started {
  here: string;
  name: string;
  protects: Pair['scope'];
  isDetecting: boolean;
}

async function startSensor({ here, ...given }: Started) {
  const options = JSON.stringify({ ...given, method: 'ring', ringMiB, countsInKernel: true });
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
    async cost(all: number, measured: number): Promise<Cost> {
      await closed;
      const { minutes, log, states, cpuMs, result } = JSON.parse(said.slice(said.indexOf('\n'))) as {
        minutes: { totals: { packets: number } }[];
        log: string[];
        states: { whyNotKernel: string | null }[];
        cpuMs: number;
        result: { mainMs: number; captureMs: number };
      };
      const why = states[0]!.whyNotKernel;
      if (why !== null) throw new Error(`the kernel does not count: ${why}`);
      const counted = minutes.reduce((sum, minute) => sum + minute.totals.packets, 0);
      const fullMinutes = log.filter((line) => line.includes('ring was full')).length;
      const [engine, whole] = [result.captureMs, cpuMs].map((ms) => (ms * 1000) / measured) as [
        number,
        number,
      ];
      const main = result.mainMs / measuredSeconds;
      return { engine, whole, main, lost: all - counted, fullMinutes };
    },
  };
}

async function offer(there: string, count: number, kpps: number, traffic: string): Promise<void> {
  const words = ['netns', 'exec', there, ...node, sender, 'vb0,vb1', String(count), String(kpps), traffic];
  const child = spawn('ip', words);
  child.stderr.pipe(process.stderr);
  await once(child.stdout, 'data');
  child.stdin.write('go\n');
  await once(child, 'exit');
}
