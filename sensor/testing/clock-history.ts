/**
 * One random life of a sensor whose host's clock is set, sleeps, and starts again, for the proof `clock-steps`: the real
 * collector, spool and uplink over captures that write down every frame, and a monitor that writes down what it stored.
 *
 * Each frame has an address of its own, so what became of it can be told at the end by anybody who can read.
 */
import { rmSync } from 'node:fs';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import type { TelemetryGap, TelemetryMinute } from '#contracts/sensor-api/telemetry.ts';
import { createMinuteCollector, type MinuteCollector } from '#sensor/collection/minute-collector.ts';
import { createHostTime, createMonitorTime, type HostTime } from '#sensor/host-time/index.ts';
import { createSpool, type Spool } from '#sensor/spool/index.ts';
import { createUplink, type Uplink } from '#sensor/uplink/index.ts';
import { captureNames, createModelCapture, type ModelCapture } from './clock-capture.ts';
import { createClockMonitor } from './clock-monitor.ts';
import { type ClockPlant, plantIn } from './clock-plants.ts';

export interface Frame {
  id: number;
  capture: string;
  trueMs: number;
  /** How far the clock was ahead when it was heard. */
  aheadMs: number;
  bootId: string;
  /** Heard within a second of an event: it may count on either side. */
  isNearEvent: boolean;
  /** A death without warning takes what was not committed. */
  mayBeLost: boolean;
}

export interface StoredMinute {
  minute: TelemetryMinute;
  /** Its upload. */
  upload: string;
  storedAtMs: number;
}

export interface Life {
  frames: Frame[];
  stored: StoredMinute[];
  gaps: { gap: TelemetryGap; storedAtMs: number }[];
  /** True times of everything that happened to the clock or to the sensor. */
  events: number[];
  /** True times in which nothing listened, between two looks at a right clock. */
  downtimes: { fromMs: number; toMs: number }[];
  /** Uploads that were sent without an answer, or may have been: their times stay as they are when they can be true. */
  uncertain: Set<string>;
  /** Boots in which the monitor told the time. */
  contacts: Set<string>;
  lastBootId: string;
  endedMs: number;
  pending: number;
}

const startMs = 1_764_000_000_000;
const pollEveryMs = 10_000;
/** The uplink sends what a clock stamped that stays behind for so long. */
const behindPatienceMs = 3_600_000;
/** Of the monitor's answers. */
const lostShare = 0.15;
/** What a death may take: a minute, and what its commit may wait for. */
const uncommittedMs = 100_000;

/** Plays one life. `directory` is for its spool, on a disk that may forget. */
export async function playLife(
  random: () => number,
  directory: string,
  plant: ClockPlant | null,
): Promise<Life> {
  const clock = createTestClock(startMs);
  let sleptMs = 0;
  let bootedAtMs = -600_000;
  let boots = 1;
  let aheadMs = 0;
  const trueMs = () => startMs + clock.monotonicMs() + sleptMs;
  const life: Life = {
    frames: [],
    stored: [],
    gaps: [],
    events: [],
    downtimes: [],
    uncertain: new Set(),
    contacts: new Set(),
    lastBootId: '',
    endedMs: 0,
    pending: 0,
  };
  const monitor = createClockMonitor({
    trueMs,
    random,
    life,
    lostShare,
    plant,
  });
  const upMs = () => clock.monotonicMs() + sleptMs - bootedAtMs;
  let host: HostTime = createHostTime(clock, upMs, 'boot 1');
  let sensor: Sensor | null = null;

  const turns = async () => {
    for (let i = 0; i < 8; i += 1) await new Promise((resolve) => setImmediate(resolve));
  };
  async function start(): Promise<void> {
    const spool = createSpool({
      directory,
      bytesMax: 64 * 1024 * 1024,
      sensorVersion: '0.1.0',
      clock,
      reporter: silentReporter,
    });
    spool.open();
    const first = spool.oldest();
    if (first) life.uncertain.add(`${first.spoolId} ${first.sequence}`);
    const time = createMonitorTime(host);
    const uplink = createUplink({
      spool: plantIn(spool, plant),
      client: monitor.clientFor(host, time),
      clock,
      reporter: silentReporter,
      random: () => 1,
      time: { host, monitor: time, ask: async () => monitor.tell(host, time) },
    });
    const collector = createMinuteCollector({
      captures: captureNames,
      spool: plantIn(spool, plant),
      reporter: silentReporter,
      bootId: host.bootId,
      onCommitted: () => uplink.wake(),
    });
    collector.start(host.read());
    const captures = captureNames.map((name) => createModelCapture(name, host, collector, clock.monotonicMs));
    await uplink.start();
    sensor = { spool, uplink, collector, captures };
  }
  async function stop(isKilled: boolean): Promise<void> {
    if (!sensor) return;
    if (isKilled) {
      for (const frame of life.frames) if (frame.trueMs > trueMs() - uncommittedMs) frame.mayBeLost = true;
    } else {
      for (const capture of sensor.captures) capture.close('sensor_down');
      sensor.collector.finish();
    }
    const stopping = sensor.uplink.stop();
    await clock.advance(3000);
    await stopping;
    sensor.spool.close();
    sensor = null;
  }
  function poll(): void {
    if (!sensor) return;
    for (const capture of sensor.captures) capture.poll();
    sensor.collector.tick(host.read());
  }
  const isNearEvent = () => life.events.some((at) => Math.abs(trueMs() - at) < 1500);
  function hear(): void {
    for (const capture of sensor?.captures ?? []) {
      if (random() < 0.4) continue;
      const id = life.frames.length + 1;
      capture.hear(id);
      const { bootId } = host;
      life.frames.push({
        ...{ id, capture: capture.name, trueMs: trueMs(), aheadMs, bootId },
        isNearEvent: isNearEvent(),
        mayBeLost: startedInMinute === Math.floor(clock.nowMs() / 60_000),
      });
    }
  }
  let startedInMinute = -1;
  async function pass(ms: number): Promise<void> {
    for (let left = Math.floor(ms); left > 0; left -= pollEveryMs) {
      const stepMs = Math.min(left, pollEveryMs);
      const earlyMs = Math.floor(stepMs * random());
      await clock.advance(earlyMs);
      hear();
      await clock.advance(stepMs - earlyMs);
      poll();
      await turns();
    }
  }
  /** No clock of a host shows a time before 1970. */
  function setClock(stepMs: number): void {
    const byMs = Math.max(stepMs, 20_000 - clock.nowMs());
    aheadMs += byMs;
    clock.stepWall(byMs);
  }
  async function afterwards(): Promise<void> {
    life.events.push(trueMs());
    // A capture looks at the clock ten times a second.
    await clock.advance(100);
    poll();
    await turns();
  }
  const anyDownMs = () => Math.floor(1000 + random() ** 3 * 600_000);
  async function restart(isKilled: boolean, isReboot: boolean, downMs = anyDownMs): Promise<void> {
    life.events.push(trueMs());
    // A sensor that died before its first commit left no trace.
    const isKnown = sensor!.spool.lastCommit() !== null || !isKilled;
    const stopped = { fromMs: trueMs(), isRight: isKnown && aheadMs === 0 };
    const stoppedIn = Math.floor(clock.nowMs() / 60_000);
    await stop(isKilled);
    await clock.advance(downMs());
    if (isReboot) {
      boots += 1;
      bootedAtMs = clock.monotonicMs() + sleptMs - 5000;
      if (random() < 0.4) setClock(random() < 0.5 ? -trueMs() + 30_000 - aheadMs : randomStep(random));
    }
    host = createHostTime(clock, upMs, `boot ${boots}`);
    const startsIn = Math.floor(clock.nowMs() / 60_000);
    startedInMinute = !isKilled && startsIn === stoppedIn ? startsIn : -1;
    if (stopped.isRight && aheadMs === 0) life.downtimes.push({ fromMs: stopped.fromMs, toMs: trueMs() });
    await start();
    await afterwards();
  }

  /**
   * A clock stays behind until its uploads are sent as they are; the monitor stores one, the receipt is lost, the sensor
   * dies, and only then the clock is set: the upload may be there already, so it must not move.
   */
  async function loseReceipt(): Promise<void> {
    setClock(-aheadMs - Math.floor(600_000 + random() * 60 * 86_400_000));
    await afterwards();
    monitor.isAway = false;
    monitor.lostShare = 1;
    await pass(behindPatienceMs + 120_000);
    await restart(true, false);
    monitor.lostShare = lostShare;
    await pass(20_000);
    setClock(-aheadMs);
    await afterwards();
  }

  /**
   * The clock is minutes off, which the monitor accepts: ahead while the sensor is down, so that its gap names minutes that
   * are observed once the clock is set; or set back afterwards, into the time of a gap that was sent.
   */
  async function beDownMinutesOff(): Promise<void> {
    const offMs = Math.floor(180_000 + random() * 115_000);
    const isAhead = random() < 0.5;
    setClock(-aheadMs);
    await afterwards();
    monitor.isAway = false;
    await pass(70_000);
    if (isAhead) {
      setClock(offMs);
      await afterwards();
      await pass(70_000 + random() * 60_000);
    }
    await restart(random() < 0.5, false, () => Math.floor(200_000 + random() * 300_000));
    await pass(40_000);
    setClock(isAhead ? -aheadMs : -offMs);
    await afterwards();
    await pass(120_000);
  }

  await start();
  life.events.push(trueMs());
  await pass(30_000 + random() * 120_000);
  const events = 2 + Math.floor(random() * 5);
  for (let i = 0; i < events; i += 1) {
    const kind = random();
    if (kind < 0.04) await loseReceipt();
    else if (kind < 0.1) await beDownMinutesOff();
    else if (kind < 0.55) {
      // Half of the time back to the right time, as people do who see a mistake.
      setClock(aheadMs !== 0 && random() < 0.5 ? -aheadMs : randomStep(random));
      await afterwards();
    } else if (kind < 0.7) {
      const ms = Math.floor(10_000 + random() ** 2 * 7_200_000);
      life.events.push(trueMs());
      if (aheadMs === 0) life.downtimes.push({ fromMs: trueMs(), toMs: trueMs() + ms });
      sleptMs += ms;
      clock.stepWall(ms);
      await afterwards();
    } else await restart(random() < 0.5, random() < 0.3);
    monitor.isAway = random() < 0.25;
    await pass(20_000 + random() * 240_000);
  }
  monitor.isAway = false;
  monitor.lostShare = 0;
  setClock(-aheadMs);
  await afterwards();
  await pass(200_000);
  for (let i = 0; i < 60 && sensor!.spool.status().pendingUploads > 0; i += 1) await pass(60_000);
  life.pending = sensor!.spool.status().pendingUploads;
  life.endedMs = trueMs();
  life.lastBootId = host.bootId;
  // What the last minutes hold is on its way.
  for (const frame of life.frames) if (frame.trueMs > trueMs() - uncommittedMs) frame.mayBeLost = true;
  await stop(true);
  rmSync(directory, { recursive: true, force: true });
  return life;
}

/** Seconds to decades, both ways. */
function randomStep(random: () => number): number {
  const seconds = Math.exp(Math.log(2) + random() * Math.log(30 * 365.25 * 86_400 * 0.5));
  const ms = Math.round((seconds * (random() < 0.3 ? 1000 : 60_000)) / (random() < 0.3 ? 60 : 1));
  return Math.round(Math.max(2000, Math.min(ms, 9e11))) * (random() < 0.5 ? -1 : 1);
}

interface Sensor {
  spool: Spool;
  uplink: Uplink;
  collector: MinuteCollector;
  captures: ModelCapture[];
}
