/**
 * Proof by killing: a sensor that collects and uploads is ended with SIGKILL at random moments, again and again.
 *
 * The oracle knows what every minute held and what the sensor said it had committed. In the end every minute must
 * have arrived as it was, or be named by a gap; none twice; and none that was committed may be missing. The monitor's
 * place is taken by a server that fails, refuses and loses answers now and then. The same run with a fault planted
 * in the sensor must fail, or the proof shows nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  decodeUpload,
  decompressUpload,
  type TelemetryUpload,
} from '#contracts/sensor-api/telemetry-codec.ts';
import {
  bytesOfMinute,
  type KilledSensorInput,
  type PlantedFault,
  plantedFaults,
} from '#sensor/testing/killed-sensor.ts';

export const name = 'sensor-spool-kills';

export interface ProveOptions {
  n: number;
  seed: number;
  report: (line: string) => void;
}

export interface ProveResult {
  claim: string;
  tried: number;
  failures: number;
  plantedBugsCaught: string;
}

const startMinute = 1_764_000_000;
/** A minute of the sensor takes 40 ms. */
const speed = 1500;
/** Most kills come within this time after the sensor runs; some come while it starts. */
const killWithinMs = 500;
const startKillShare = 0.15;
/** Kills of each run with a planted fault. */
const plantedKills = 12;
const childPath = fileURLToPath(new URL('../testing/killed-sensor.ts', import.meta.url));

/** Runs `n` kills without a fault and a few with each planted one. */
export async function prove(options: ProveOptions): Promise<ProveResult> {
  const offences = await runKills(options.n, options.seed, null, options.report);
  for (const offence of offences) options.report(offence);
  let caught = 0;
  for (const fault of plantedFaults) {
    const found = await runKills(plantedKills, options.seed, fault, () => {});
    options.report(`planted ${fault}: ${found.length > 0 ? found[0] : 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim: 'every minute is the truth or an exact gap, none is doubled, nothing committed is lost',
    tried: options.n,
    failures: offences.length,
    plantedBugsCaught: `${caught} of ${plantedFaults.length}`,
  };
}

/** Kills a sensor `n` times, lets it finish, and returns what is wrong, one sentence each. */
export async function runKills(
  n: number,
  seed: number,
  fault: PlantedFault | null,
  report: (line: string) => void,
): Promise<string[]> {
  const random = seededRandom(seed);
  const directory = mkdtempSync(join(tmpdir(), 'svc-kill-'));
  const monitor = await startUnreliableMonitor(random);
  const committed = new Set<number>();
  const input: KilledSensorInput = {
    directory,
    url: monitor.url,
    epochMs: Date.now(),
    startMinute,
    speed,
    fault,
    drainAfterMinutes: null,
  };
  try {
    for (let kill = 1; kill <= n; kill += 1) {
      const { child, runs } = startSensor(input, committed);
      const gone = ended(child);
      // Waiting for the sensor to run keeps the proof as strong on a busy machine.
      if (random() >= startKillShare) await Promise.race([runs, gone]);
      await new Promise((resolve) => setTimeout(resolve, random() * killWithinMs));
      child.kill('SIGKILL');
      await gone;
      if (kill % 50 === 0) report(`${kill} kills, ${committed.size} minutes committed`);
    }
    const last = startSensor({ ...input, drainAfterMinutes: 5 }, committed);
    const code = await ended(last.child);
    if (code !== 0) return [`the sensor ended with ${code} after ${n} kills`];
    report(`${n} kills, ${committed.size} minutes committed, ${monitor.stored.size} uploads stored`);
    return judge([...monitor.stored.values()], committed);
  } finally {
    monitor.server.closeAllConnections();
    monitor.server.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Compares what arrived with the truth. */
function judge(uploads: TelemetryUpload[], committed: ReadonlySet<number>): string[] {
  const offences: string[] = [];
  const arrived = new Map<number, { count: number; observedMs: number; bytes: number }>();
  const gaps = new Set<number>();
  const refused = new Set<number>();
  for (const upload of uploads) {
    for (const one of upload.minutes) {
      const before = arrived.get(one.minute)?.count ?? 0;
      arrived.set(one.minute, { count: before + 1, observedMs: one.observedMs, bytes: one.totals.ipBytes });
    }
    for (const gap of upload.gaps) {
      for (let minute = gap.fromMinute; minute <= gap.toMinute; minute += 60) {
        gaps.add(minute);
        if (gap.reason === 'refused') refused.add(minute);
      }
    }
  }
  const known = [...arrived.keys(), ...gaps].sort((a, b) => a - b);
  if (known.length === 0) return ['nothing arrived at all'];
  for (let minute = known[0]!; minute <= known.at(-1)!; minute += 60) {
    const at = `minute ${(minute - startMinute) / 60}`;
    const one = arrived.get(minute);
    if (!one && !gaps.has(minute)) offences.push(`${at} is missing without a gap`);
    if (one && one.count > 1) offences.push(`${at} arrived ${one.count} times`);
    if (one?.observedMs === 60_000 && one.bytes !== bytesOfMinute(minute))
      offences.push(`${at} has wrong bytes`);
    if (one && one.observedMs < 60_000 && !gaps.has(minute)) offences.push(`${at} is partial without a gap`);
    if (one && one.observedMs === 60_000 && gaps.has(minute)) offences.push(`${at} is whole and a gap`);
    if (committed.has(minute) && !one && !refused.has(minute))
      offences.push(`${at} was committed and is lost`);
  }
  return offences;
}

interface UnreliableMonitor {
  url: string;
  server: Server;
  /** Stored uploads by identity: one applies once. */
  stored: Map<string, TelemetryUpload>;
}

async function startUnreliableMonitor(random: () => number): Promise<UnreliableMonitor> {
  const stored = new Map<string, TelemetryUpload>();
  const server = createServer(async (incoming, response) => {
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    };
    const pieces: Buffer[] = [];
    try {
      for await (const piece of incoming) pieces.push(piece as Buffer);
    } catch {
      // The sensor was killed in the middle of its request: nothing to store.
      return;
    }
    const upload = decodeUpload(
      decompressUpload(Buffer.concat(pieces), incoming.headers['content-encoding']),
    );
    const key = `${upload.spoolId} ${upload.sequence}`;
    const luck = random();
    if (luck < 0.1) return answer(500, {});
    if (luck < 0.13 && !stored.has(key))
      return answer(422, { error: { code: 'refused', message: 'refused' } });
    const receipt = stored.has(key) ? 'duplicate' : 'accepted';
    if (!stored.has(key)) stored.set(key, upload);
    if (luck < 0.25) return incoming.socket.destroy();
    answer(200, { spool_id: upload.spoolId, sequence: upload.sequence, receipt });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, stored };
}

interface StartedSensor {
  child: ChildProcess;
  runs: Promise<void>;
}

function startSensor(input: KilledSensorInput, committed: Set<number>): StartedSensor {
  const child = spawn(process.execPath, [childPath, JSON.stringify(input)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, NODE_NO_WARNINGS: '1' },
  });
  let rest = '';
  const runs = new Promise<void>((resolve) => {
    child.stdout!.on('data', (piece: Buffer) => {
      const lines = (rest + piece.toString()).split('\n');
      rest = lines.pop()!;
      for (const line of lines) {
        if (line === 'runs') resolve();
        else committed.add(Number(line));
      }
    });
  });
  return { child, runs };
}

/** Resolves with the exit code once the process is gone and all it wrote was read. */
function ended(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('close', (code) => resolve(code)));
}

/** Numbers from 0 to 1, the same for the same seed. */
function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
