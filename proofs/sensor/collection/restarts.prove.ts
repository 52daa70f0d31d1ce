/**
 * Proof by restarting a whole sensor under traffic on a veth, as an upgrade does, and by killing it: every frame is counted
 * once but those of the seconds in which nothing listened, and these seconds are named.
 *
 * Each frame has its own local address, so that it is known which frames were heard. The sender's ledger says when each was
 * sent. Needs root.
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { matchesOf } from '#contracts/sensor-api/filter.ts';
import type { TelemetryUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import { storeIdentity } from '#sensor/enrolment/index.ts';
import { detachCounter, pinRoot } from '#sensor/kernel/attachment.ts';
import { detachFilter } from '#sensor/kernel/filter.ts';
import { receiptFor, startFakeMonitor, uploadIn } from '#sensor/testing/fake-monitor.ts';
import { ethernetFrame, openFrameSender, udp4 } from '#sensor/testing/frame-sender.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';
import { readPending } from '#sensor/testing/read-pending.ts';
import { type Interruption, judgeRestarts, restartPlants, type SentFrame } from './judge-restarts.ts';

export const name = 'sensor-restarts';

const execute = promisify(execFile);
const everyMs = 20_000;
const sendEveryMs = 20;
/** A killed sensor loses the live window it was in, and what had not reached the disk. */
const lostByKillMs = 11_500;
/** The sensor of this checkout. */
export const ownProgram = fileURLToPath(new URL('../../..', import.meta.url));
const plan = { plan_version: 1, local_cidrs: ['10.0.0.0/8'], protected_targets: [] };
/** No frame of the ledger is to it. */
export const victim = '10.0.0.77';
const hourMs = 3_600_000;

/** With a rule for it that drops, however short the filter has learned. */
function dropping() {
  const { match } = matchesOf({ class: 'udp_flood', vectors: [] }, victim)[0]!;
  const at = (ms: number) => new Date(Date.now() + ms).toISOString();
  const rule = { target: victim, class: 'udp_flood', match };
  const times = { began_at: at(hourMs), drops_at: at(-hourMs), ends_at: at(hourMs) };
  return { ...plan, filter_version: 1, filter_rules: [{ ...rule, ...times }] };
}

export interface RestartOptions {
  /** Restarts. */
  n: number;
  report(line: string): void;
}

/** `n` restarts, one every 20 s; then a fifth as many kills. */
export async function prove({ n, report }: RestartOptions) {
  const restarts = await interruptSensor({ n, signal: 'SIGTERM', everyMs, report });
  const kills = await interruptSensor({ n: Math.ceil(n / 5), signal: 'SIGKILL', everyMs, report });
  const offences = [...restarts.verdict.offences, ...kills.verdict.offences];
  for (const offence of offences) report(offence);
  const names = Object.keys(restartPlants) as (keyof typeof restartPlants)[];
  const caught = names.filter((plant) => {
    const planted = judgeRestarts(
      restartPlants[plant]([...restarts.uploads]),
      restarts.frames,
      restarts.interruptions,
    );
    report(`planted ${plant}: ${planted.offences[0] ?? 'NOT NOTICED'}`);
    return planted.offences.length > 0;
  });
  const { heardFrames, heardBytes, deafMs } = restarts.verdict;
  const seconds = (ms: number) => (ms / 1000).toFixed(1);
  return {
    claim:
      `restarted every ${everyMs / 1000} s under traffic on a veth: each of ${heardFrames} frames (${heardBytes} bytes) is counted once, ` +
      `and all others were sent while nothing listened, at most ${seconds(Math.max(...deafMs))} s a restart, which are named; ` +
      `killed ${Math.ceil(n / 5)} times: at most ${seconds(Math.max(...kills.verdict.deafMs))} s`,
    tried: n + Math.ceil(n / 5),
    failures: offences.length,
    plantedBugsCaught: `${caught.length} of ${names.length}`,
  };
}

export interface InterruptOptions extends RestartOptions {
  signal: 'SIGTERM' | 'SIGKILL';
  everyMs: number;
  /** The kernel counts too, and so nothing is lost: sending begins with a minute, after the sensor listens. */
  inKernel?: boolean;
  /** Root folders of the sensors that follow each other, one more than restarts; this checkout's if absent. */
  programs?: readonly string[];
  /**
   * From 0 to 1: each sensor ends at a random moment within `everyMs` of its start, also before it listens, and before every other start the
   * program that attaches is killed at a random moment of its work. A filter is attached too, which drops what is sent to `victim`.
   */
  random?: () => number;
}

/** Ends and starts a sensor again and again while frames are sent, and judges what it uploaded and what waits. */
export async function interruptSensor(options: InterruptOptions) {
  const { n, signal, everyMs, report, inKernel = false, programs = [], random } = options;
  const folder = mkdtempSync(join(tmpdir(), 'svc-restarts-'));
  const ends: (() => void)[] = [() => rmSync(folder, { recursive: true, force: true })];
  const uploads: TelemetryUpload[] = [];
  const interruptions: Interruption[] = [];
  try {
    const { here, there } = makePair(ends);
    const told = random ? dropping() : plan;
    const monitor = await startFakeMonitor({ after: (end: () => void) => ends.push(end) }, (request) => {
      if (request.method === 'GET') return { status: 200, body: told };
      uploads.push(uploadIn(request));
      return receiptFor(request);
    });
    storeIdentity(folder, {
      sensorId: 1,
      siteId: 1,
      siteName: 'proof',
      credential: `svcsen_1_${'s'.repeat(43)}`,
    });
    if (inKernel) ends.push(() => detachCounter(here));
    if (random) ends.push(() => detachFilter(here));
    let attachMs = 0;
    let loadersKilled = 0;
    const start = async (program = ownProgram) => {
      const attaching = { interfaceName: here, program, hasFilter: random !== undefined };
      if (random && interruptions.length > 0 && random() < 0.5) {
        await attach({ ...attaching, killedAfterMs: random() * attachMs });
        loadersKilled += 1;
      }
      const beganMs = performance.now();
      if (inKernel) await attach(attaching);
      attachMs = performance.now() - beganMs;
      const settings = { program, folder, interfaceName: here, url: monitor.url };
      return startSensor({ ...settings, inKernel, hasFilter: random !== undefined }, ends);
    };
    const begun = inKernel ? null : startSending({ here, there }, ends, false);
    let sensor = await start(programs[0]);
    await sensor.listens;
    if (inKernel) await wait(60_100 - (Date.now() % 60_000));
    const sender = begun ?? startSending({ here, there }, ends, random !== undefined);
    interruptions.push({ fromMs: 0, toMs: Date.now() });
    for (let i = 1; i <= n; i += 1) {
      // From when it listens, so that it hears something on a slow machine too.
      await wait(random ? random() * everyMs : everyMs);
      const stoppedMs = Date.now();
      sensor.child.kill(signal);
      await sensor.gone;
      sensor = await start(programs[i]);
      if (!random || i === n) await sensor.listens;
      const fromMs = signal === 'SIGKILL' ? stoppedMs - lostByKillMs : stoppedMs;
      if (!inKernel) interruptions.push({ fromMs, toMs: Date.now() });
      report(
        `${signal} ${i} of ${n}: ${random ? 'started' : 'listens'} again after ${Date.now() - stoppedMs} ms`,
      );
    }
    await wait(everyMs);
    const endsAtMs = Date.now();
    // The kernel's numbers of a part are exact when no frame comes as they are read; with the rest they always are.
    if (inKernel) sender.stop();
    sensor.child.kill('SIGTERM');
    await sensor.gone;
    interruptions.push({ fromMs: endsAtMs, toMs: Date.now() });
    const frames = sender.stop();
    const passed = { in: packetsOf(here), out: packetsOf(there) };
    const left = inKernel ? await removeAll(here) : [];
    const arrived = [...uploads, ...readPending(folder)];
    const distinct = [...new Map(arrived.map((one) => [`${one.spoolId} ${one.sequence}`, one])).values()];
    return {
      verdict: judgeRestarts(distinct, frames, interruptions, inKernel),
      uploads: distinct,
      ...{ frames, interruptions, passed, left, loadersKilled, flood: sender.flood },
    };
  } finally {
    for (const end of ends.reverse()) end();
  }
}

interface Attaching {
  interfaceName: string;
  program: string;
  hasFilter: boolean;
  killedAfterMs?: number;
}

/** Lets the kernel count an interface by this program, as a service does before each start. */
async function attach({ interfaceName, program, hasFilter, killedAfterMs }: Attaching): Promise<void> {
  const script = `const { attachCounter, preparePins } = await import('#sensor/kernel/attachment.ts');
    preparePins(['${interfaceName}'], { uid: 0, gid: 0 });
    attachCounter('${interfaceName}');
    ${hasFilter ? `(await import('#sensor/kernel/filter.ts')).attachFilter('${interfaceName}');` : ''}`;
  const words = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', script];
  const running = execute(process.execPath, words, { cwd: program });
  if (killedAfterMs === undefined) return void (await running);
  await Promise.race([running, wait(killedAfterMs)]);
  running.child.kill('SIGKILL');
  await running.catch(() => {});
}

/** Packets that an interface of the kernel received. */
const packetsOf = (name: string) =>
  Number(readFileSync(`/sys/class/net/${name}/statistics/rx_packets`, 'utf8'));

/** What is left at an interface after the command that takes everything off. */
async function removeAll(interfaceName: string): Promise<string[]> {
  const env = { PATH: process.env.PATH, SVC_SENSOR_CAPTURES: `uplink:${interfaceName}` };
  const file = join(ownProgram, 'sensor/svc-sensor.ts');
  const words = ['--disable-warning=ExperimentalWarning', file, 'check', '--remove'];
  await execute(process.execPath, words, { env });
  const show = (...line: string[]) => spawnSync(line[0]!, line.slice(1), { encoding: 'utf8' }).stdout;
  const [link, hooks] = [
    show('ip', 'link', 'show', interfaceName),
    show('tc', 'qdisc', 'show', 'dev', interfaceName),
  ];
  const [index] = link.split(':');
  const pins = existsSync(pinRoot) ? readdirSync(pinRoot) : [];
  return [
    ...(link.includes('xdp') ? ['an XDP program is left'] : []),
    ...(hooks.includes('clsact') ? ['a hook of tc is left'] : []),
    ...pins
      .filter((pin) => pin.startsWith(`${statSync('/proc/self/ns/net').ino}-${index}-`))
      .map((pin) => `${pin} is left`),
  ];
}

/** Two ends of a wire without other traffic. */
function makePair(ends: (() => void)[]): { here: string; there: string } {
  const [here, there] = [uniqueName(), uniqueName()];
  const ip = (...words: string[]) => {
    const { status, stderr } = spawnSync('ip', words, { encoding: 'utf8' });
    if (status !== 0) throw new Error(`ip ${words.join(' ')}: ${stderr}`);
  };
  ip('link', 'add', here, 'type', 'veth', 'peer', 'name', there);
  ends.push(() => spawnSync('ip', ['link', 'del', here]));
  for (const end of [here, there]) {
    spawnSync('sh', ['-c', `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`]);
    ip('link', 'set', end, 'arp', 'off', 'up');
  }
  return { here, there };
}

/**
 * Sends frames of changing size at a steady pace, in and out in turn. `stop` returns the ledger. `floods`: beside them as many to the victim,
 * which are no part of it.
 */
function startSending(
  { here, there }: { here: string; there: string },
  ends: (() => void)[],
  floods: boolean,
): { stop(): SentFrame[]; flood: { packets: number; bytes: number } } {
  const senders = [openFrameSender(there), openFrameSender(here)];
  const frames: SentFrame[] = [];
  const flood = { packets: 0, bytes: 0 };
  const timer = setInterval(() => {
    const number = frames.length;
    if (floods) {
      const datagram = udp4('203.0.113.9', victim, 20 + ((number * 37) % 500));
      flood.packets += 1;
      flood.bytes += datagram.length;
      senders[0]!.send(ethernetFrame(0x0800, datagram));
    }
    const address = `10.${1 + (number >> 16)}.${(number >> 8) & 255}.${number & 255}`;
    const datagram = udp4(address, '198.51.100.2', 40 + ((number * 61) % 900));
    frames.push({ address, ipBytes: datagram.length, sentAtMs: Date.now() });
    senders[number % 2]!.send(ethernetFrame(0x0800, datagram));
  }, sendEveryMs);
  ends.push(() => {
    clearInterval(timer);
    for (const sender of senders) sender.close();
  });
  let endMs: number | null = null;
  return {
    flood,
    stop() {
      clearInterval(timer);
      endMs ??= Date.now();
      return [...frames, { address: '', ipBytes: 0, sentAtMs: endMs }];
    },
  };
}

interface StartedSensor {
  child: ChildProcess;
  listens: Promise<void>;
  gone: Promise<void>;
}

function startSensor(
  options: {
    program: string;
    folder: string;
    interfaceName: string;
    url: string;
    inKernel: boolean;
    hasFilter: boolean;
  },
  ends: (() => void)[],
): StartedSensor {
  const { program, folder, interfaceName, url } = options;
  const file = join(program, 'proofs/sensor/collection/restarted-sensor.ts');
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
    env: {
      ...{ PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE },
      ...{ SVC_SENSOR_STATE_DIR: folder, SVC_MONITOR_URL: url, SVC_SENSOR_PORT_SCANS: '0' },
      ...{ SVC_SENSOR_CAPTURES: `uplink:${interfaceName}`, SVC_SENSOR_RING_MIB: '16' },
      ...(options.hasFilter && { SVC_SENSOR_FILTER: '1' }),
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  ends.push(() => child.kill('SIGKILL'));
  let said = '';
  const gone = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const listens = new Promise<void>((resolve, reject) => {
    child.stderr!.on('data', (piece: Buffer) => {
      said += piece.toString();
      if (!said.includes('capture listens')) return;
      if (options.inKernel && !said.includes('the kernel counts')) reject(new Error(said));
      resolve();
    });
    void gone.then(() => reject(new Error(`the sensor ended:\n${said}`)));
  });
  // One that is killed as it starts.
  listens.catch(() => {});
  return { child, listens, gone };
}
