/**
 * Runs a collection in a network namespace with `va`, whose other end `vb` is in another namespace, and prints JSON.
 *
 * usage: capture-probe.ts MODE OPTIONS-AS-JSON
 */
import { execFileSync, spawn } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { systemClock } from '#common/clock/index.ts';
import { createReporter, type Reporter } from '#common/reporter/index.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import {
  type CaptureSpec,
  createCollection,
  createUnkeptMinutes,
  type LocalWindow,
} from '#sensor/collection/index.ts';
import { Detection } from '#sensor/detection/index.ts';
import { createHostTime } from '#sensor/host-time/index.ts';
import { attachCounter, detachCounter, preparePins } from '#sensor/kernel/attachment.ts';
import { parsePlan, type SensorPlan } from '#sensor/plan/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool } from '#sensor/spool/index.ts';
import { until } from '#service-kit/testing/until.ts';
import { ethernetFrame, openFrameSender, udp4, udp6 } from './frame-sender.ts';

interface ProbeOptions {
  /** The namespace of `vb`. */
  peer: string;
  members?: number;
  method?: 'auto' | 'ring' | 'tcpdump';
  megabytes?: number;
  ringMiB?: number;
  /** `va` by default. */
  name?: string;
  /** What the plan protects. */
  protects?: { addresses: string[]; prefixes: string[] };
  /** Detects attacks on what is protected. */
  isDetecting?: boolean;
  /** The kernel counts, as at a sensor that has its program attached. Needs root. */
  countsInKernel?: boolean;
}

const patienceMs = 60_000;

interface Collected {
  minutes: TelemetryMinute[];
  gaps: TelemetryGap[];
  windows: LocalWindow[];
  log: string[];
}

interface Running {
  /** How often a capture began to listen. */
  listens(): number;
  isListening(): boolean;
  /** Live windows so far. */
  windows: readonly LocalWindow[];
}

/** Runs `body` during a capture of the interface. Returns the collected data. */
async function whileCapturing(
  options: ProbeOptions,
  body: (running: Running) => Promise<unknown>,
): Promise<unknown> {
  const collected: Collected = { minutes: [], gaps: [], windows: [], log: [] };
  const captures: CaptureSpec[] = [
    {
      name: options.name ?? 'va',
      role: 'bridge',
      members: options.members ?? 1,
      source: {
        kind: 'live',
        interfaceName: options.name ?? 'va',
        ringMiB: options.ringMiB ?? 32,
        method: options.method ?? 'auto',
      },
    },
  ];
  let listens = 0;
  const reporter = createReporter({
    program: 'probe',
    level: 'debug',
    write(line) {
      collected.log.push(line);
      if (line.includes('capture listens  ')) listens += 1;
    },
  });
  const stateDirectory = mkdtempSync(join(tmpdir(), 'svc-probe-'));
  process.once('exit', () => rmSync(stateDirectory, { recursive: true, force: true }));
  if (options.countsInKernel) {
    preparePins([captures[0]!.name], { uid: 0, gid: 0 });
    // Not the counters of another one before.
    detachCounter(captures[0]!.name);
    attachCounter(captures[0]!.name);
  }
  const detection = options.isDetecting
    ? createProbeDetection(captures[0]!.name, stateDirectory, reporter)
    : null;
  const collection = createCollection({
    captures,
    reporter,
    ...(detection ? { detection } : {}),
    ...(options.countsInKernel && { stateDirectory }),
    onCommitted: () => {},
    onWindow: (window) => collected.windows.push(window),
    // A measurement has the windows of a running sensor; a test would wait for them.
    ...(mode === 'until-told' ? {} : { windowMs: 1000 }),
    spool: createUnkeptMinutes((minutes, gaps) => {
      collected.minutes.push(...minutes);
      collected.gaps.push(...gaps);
    }),
  });
  await detection?.start();
  await collection.start();
  const plan = planOf(options);
  collection.follow(plan);
  detection?.follow(plan);
  await until('a capture listens', patienceMs, () => listens > 0);
  const result = await body({
    listens: () => listens,
    isListening: () => collection.states()[0]!.isListening,
    windows: collected.windows,
  });
  const states = collection.states();
  await collection.stop();
  await detection?.stop();
  return { ...collected, states, result };
}

function planOf({ protects, isDetecting }: ProbeOptions): SensorPlan {
  return {
    ...parsePlan({
      plan_version: 1,
      application_usage_version: 1,
      application_protocol_version: 1,
      local_cidrs: ['10.9.0.0/16', '2001:db8::/32', ...(protects?.prefixes ?? [])],
      protected_targets: protects?.addresses ?? [],
      ...(isDetecting
        ? {
            detection_version: 1,
            detection: { additional_cidrs: protects?.prefixes ?? [], groups: [], drills: [] },
          }
        : {}),
    })!,
    takesLive: true,
  };
}

/** The detection of a running sensor, with a spool in this folder. */
function createProbeDetection(capture: string, directory: string, reporter: Reporter) {
  const clock = systemClock;
  const spool = createSpool({
    directory,
    bytesMax: 64 << 20,
    sensorVersion: '0.1.0',
    kinds: recordKinds,
    clock,
    reporter,
  });
  spool.open();
  return new Detection({
    captures: [capture],
    uplinks: [],
    stateDirectory: directory,
    spool,
    clock,
    hostTime: createHostTime(clock),
    reporter,
    onCommitted() {},
  });
}

/** TCP segments that both namespaces sent; a merged segment counts as the segments it was made of. */
function tcpSegments(peer: string): number {
  const there = execFileSync('ip', ['netns', 'exec', peer, 'cat', '/proc/net/snmp'], { encoding: 'utf8' });
  return [readFileSync('/proc/net/snmp', 'utf8'), there].reduce((sum, text) => {
    const [names, values] = text
      .split('\n')
      .filter((line) => line.startsWith('Tcp:'))
      .map((line) => line.split(' '));
    const read = (name: string) => Number(values![names!.indexOf(name)]);
    return sum + read('OutSegs') + read('RetransSegs');
  }, 0);
}

/** One TCP connection to the other namespace with many segments in both directions. */
async function transfer(options: ProbeOptions): Promise<{ segments: number }> {
  const bytes = (options.megabytes ?? 4) * 1024 * 1024;
  const server = `require('net').createServer((c) => c.pipe(c)).listen(9000, '10.9.0.2', () => console.log('up'))`;
  const child = spawn('ip', ['netns', 'exec', options.peer, process.execPath, '-e', server]);
  await new Promise((resolve) => child.stdout.once('data', resolve));
  const before = tcpSegments(options.peer);
  await Promise.all(
    Array.from({ length: 4 }, async () => {
      const socket = connect(9000, '10.9.0.2');
      const piece = Buffer.alloc(bytes / 64);
      let echoed = 0;
      socket.on('data', (data) => {
        echoed += data.length;
        if (echoed === bytes) socket.end();
      });
      for (let i = 0; i < 64; i += 1) socket.write(piece);
      await new Promise((resolve) => socket.once('close', resolve));
    }),
  );
  // The last acknowledgements may still be under way.
  let last = -1;
  for (let now = tcpSegments(options.peer); now !== last; now = tcpSegments(options.peer)) {
    last = now;
    await wait(200);
  }
  child.kill();
  return { segments: last - before };
}

/**
 * Each flow makes four unanswered rows. A fanout member has room for 1,024 such rows, and the kernel's hash, random at
 * each boot, gives one of two members more than half.
 */
const flowsSent = 400;

/** Frames of many flows, including tagged ones and other protocols, sent to `va` from the other namespace. */
async function frames(options: ProbeOptions, { windows }: Running): Promise<object> {
  const sent: { packets: number } = JSON.parse(
    execFileSync(
      'ip',
      ['netns', 'exec', options.peer, process.execPath, import.meta.filename, 'send', '{}'],
      {
        encoding: 'utf8',
      },
    ),
  );
  await until('all frames are in live windows', patienceMs, () => {
    return windows.reduce((sum, { totals }) => sum + totals.packets, 0) >= sent.packets;
  });
  return sent;
}

function send(): unknown {
  const sender = openFrameSender('vb');
  const sent = { packets: 0, ipPackets: 0, ipBytes: 0 };
  const note = (frame: Buffer, ipBytes: number) => {
    sender.send(frame);
    sent.packets += 1;
    sent.ipPackets += ipBytes > 0 ? 1 : 0;
    sent.ipBytes += ipBytes;
  };
  for (let flow = 0; flow < flowsSent; flow += 1) {
    const from = `10.9.${1 + (flow >> 7)}.${flow & 127}`;
    note(ethernetFrame(0x0800, udp4(from, '198.51.100.7', 100 + flow)), 128 + flow);
    note(fromRouter(ethernetFrame(0x0800, udp4('198.51.100.7', from, 900))), 928);
    note(ethernetFrame(0x0800, udp4(from, '198.51.100.8', 60), 77), 88);
    note(ethernetFrame(0x86dd, udp6(1, flow, 300)), 348);
    note(ethernetFrame(0x0806, Buffer.alloc(46)), 0);
  }
  // Two tags: the kernel removes the outer one.
  const inner = Buffer.concat([Buffer.from('00050800', 'hex'), udp4('10.9.9.9', '198.51.100.9', 100)]);
  note(qinq(inner), 128);
  sender.close();
  return sent;
}

/** Another source MAC than those of the guests. */
function fromRouter(frame: Buffer): Buffer {
  frame[11] = 0x0f;
  return frame;
}

function qinq(inner: Buffer): Buffer {
  const frame = ethernetFrame(0x8100, inner, 100);
  frame.writeUInt16BE(0x88a8, 12);
  return frame;
}

/** The interface is renamed, renamed back, removed and created again. */
async function comeAndGo(running: Running): Promise<unknown> {
  const turnsTo = (listens: number, isListening: boolean) =>
    until(`it listens for the ${listens}. time: ${isListening}`, patienceMs, () => {
      return running.listens() >= listens && running.isListening() === isListening;
    });
  const ip = (...words: string[]) => execFileSync('ip', ['link', ...words]);
  ip('set', 'va', 'down');
  ip('set', 'va', 'name', 'vx');
  ip('set', 'vx', 'up');
  await turnsTo(1, false);
  ip('set', 'vx', 'down');
  ip('set', 'vx', 'name', 'va');
  ip('set', 'va', 'up');
  await turnsTo(2, true);
  ip('del', 'va');
  await turnsTo(2, false);
  ip('add', 'va', 'type', 'veth', 'peer', 'name', 'vc');
  ip('set', 'va', 'up');
  ip('set', 'vc', 'up');
  await turnsTo(3, true);
  const sender = openFrameSender('vc');
  for (let i = 0; i < 7; i += 1) sender.send(ethernetFrame(0x0800, udp4('10.9.0.1', '198.51.100.7', 100)));
  sender.close();
  const heardOf = (address: string) =>
    running.windows.flatMap(({ hosts }) => hosts).find((host) => host.address === address)?.packets ?? 0;
  await until('the frames are in a live window', patienceMs, () => heardOf('10.9.0.1') > 0);
  return null;
}

/** Datagrams from this namespace to itself: each one leaves and arrives on the loopback interface. */
async function toItself(): Promise<unknown> {
  const socket = createSocket('udp4');
  for (let i = 0; i < 50; i += 1) {
    await new Promise((resolve) => socket.send(Buffer.alloc(100), 9999, '127.0.0.1', resolve));
  }
  socket.close();
  return {};
}

/** Captures until `stop` arrives. Returns the processor time at the start, or when `mark` arrived; of threads, what they took since. */
async function untilTold(): Promise<unknown> {
  let [before, threadsBefore] = [cpuMs(), threadMs()];
  process.stdout.write('listening\n');
  for await (const line of createInterface({ input: process.stdin })) {
    if (line !== 'mark') break;
    [before, threadsBefore] = [cpuMs(), threadMs()];
  }
  const threads = threadMs();
  process.stdin.pause();
  return {
    before,
    ...{ mainMs: threads.main - threadsBefore.main, captureMs: threads.capture - threadsBefore.capture },
  };
}

/** Processor time of the main thread and of the capture threads, milliseconds. */
function threadMs(): { main: number; capture: number } {
  const sums = { main: 0, capture: 0 };
  for (const id of readdirSync('/proc/self/task')) {
    const read = (name: string) => readFileSync(`/proc/self/task/${id}/${name}`, 'utf8');
    const ms = Number(read('schedstat').split(' ')[0]) / 1e6;
    if (Number(id) === process.pid) sums.main += ms;
    else if (read('comm').startsWith('capture')) sums.capture += ms;
  }
  return sums;
}

/** Processor time of this process and of its ended children, milliseconds. */
function cpuMs(): number {
  const stat = readFileSync('/proc/self/stat', 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * 10, 0);
}

async function measure(): Promise<unknown> {
  const probed = (await whileCapturing(options, untilTold)) as { result: { before: number } };
  // The end of a child is recorded slightly later.
  await wait(200);
  const resident = Number(/VmHWM:\s*(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1]) / 1024;
  const ring = options.method === 'tcpdump' ? 0 : (options.ringMiB ?? 32);
  return { ...probed, cpuMs: cpuMs() - probed.result.before, memoryMiB: resident - ring };
}

/** User and capabilities of this process. */
async function listen(): Promise<unknown> {
  const capabilities = /CapEff:\s*(\w+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
  return { uid: process.getuid!(), capabilities };
}

const [mode, text] = process.argv.slice(2);
const options = JSON.parse(text ?? '{}') as ProbeOptions;
const modes: Record<string, () => unknown> = {
  send,
  frames: () => whileCapturing(options, (running) => frames(options, running)),
  both: () =>
    whileCapturing(options, async (running) => ({
      ...(await frames(options, running)),
      ...(await transfer(options)),
    })),
  transfer: () => whileCapturing(options, () => transfer(options)),
  'until-told': measure,
  toItself() {
    execFileSync('ip', ['link', 'set', 'lo', 'up']);
    return whileCapturing(options, toItself);
  },
  listen: () => whileCapturing(options, listen),
  comeAndGo: () => whileCapturing(options, comeAndGo),
};
process.stdout.write(JSON.stringify(await modes[mode!]!()));
