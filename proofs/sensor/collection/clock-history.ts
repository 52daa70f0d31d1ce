/**
 * One random life of a sensor whose host has clock steps, suspends and restarts, for the proof `clock-steps`: the real
 * collector, spool and uplink, captures that record every frame, and a monitor that records what it stored.
 *
 * Each frame has its own address, so that it can be found at the end.
 */
import { rmSync } from 'node:fs';
import { createTestClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { MinuteCollector } from '#sensor/collection/minute-collector.ts';
import { createHostTime, createMonitorTime, type HostTime } from '#sensor/host-time/index.ts';
import { recordKinds } from '#sensor/records/index.ts';
import { createSpool, type Spool } from '#sensor/spool/index.ts';
import { createUplink, type Uplink } from '#sensor/uplink/index.ts';
import { captureNames, createModelCapture, type ModelCapture } from './clock-capture.ts';
import type { Life } from './clock-life.ts';
import { createClockMonitor } from './clock-monitor.ts';
import { type ClockPlant, plantIn } from './clock-plants.ts';

const startMs = 1_764_000_000_000;
const pollEveryMs = 10_000;
/** After this time the uplink sends uploads of a clock that stays behind. */
const behindPatienceMs = 3_600_000;
/** Part of the monitor's answers that are lost. */
const lostShare = 0.15;
/** Time that the death of a host may lose: a minute, and the delay of its commit. */
const uncommittedMs = 100_000;
/** Time that a kill may lose: two live windows, at the turn of a minute. */
const lostByKillMs = 25_000;

/** Plays one life. `directory` is for its spool. */
export async function playLife(
  random: () => number,
  directory: string,
  plant: ClockPlant | null,
): Promise<Life> {
  const clock = createTestClock(startMs);
  const beganMs = clock.monotonicMs();
  let sleptMs = 0;
  let bootedAtMs = beganMs - 600_000;
  let boots = 1;
  let aheadMs = 0;
  const trueMs = () => startMs + clock.monotonicMs() - beganMs + sleptMs;
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
      kinds: recordKinds,
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
    const collector = new MinuteCollector({
      captures: captureNames,
      spool: plantIn(spool, plant),
      reporter: silentReporter,
      bootId: host.bootId,
      stateDirectory: directory,
      onCommitted: () => uplink.wake(),
    });
    collector.start(host.read());
    const captures = captureNames.map((name) => createModelCapture(name, host, collector, clock.monotonicMs));
    await uplink.start();
    sensor = { spool, uplink, collector, captures };
  }
  async function stop(isKilled: boolean, lostMs = lostByKillMs): Promise<void> {
    if (!sensor) return;
    if (isKilled) {
      for (const frame of life.frames) if (frame.trueMs > trueMs() - lostMs) frame.mayBeLost = true;
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
        mayBeLost: false,
      });
    }
  }
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
  /** The clock of a host shows no time before 1970. */
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
    // A sensor killed before its first commit left no trace.
    const isKnown = sensor!.spool.lastCommit() !== null || !isKilled;
    const stopped = { fromMs: trueMs(), isRight: isKnown && aheadMs === 0 };
    await stop(isKilled, isReboot ? uncommittedMs : lostByKillMs);
    await clock.advance(downMs());
    if (isReboot) {
      boots += 1;
      bootedAtMs = clock.monotonicMs() + sleptMs - 5000;
      if (random() < 0.4) setClock(random() < 0.5 ? -trueMs() + 30_000 - aheadMs : randomStep(random));
    }
    host = createHostTime(clock, upMs, `boot ${boots}`);
    if (stopped.isRight && aheadMs === 0) life.downtimes.push({ fromMs: stopped.fromMs, toMs: trueMs() });
    await start();
    await afterwards();
  }

  /**
   * A clock stays behind until its uploads are sent unchanged. The monitor stores one, its receipt is lost, the sensor
   * is killed, and then the clock is set. The upload may be stored already, so it must not be moved.
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
   * The clock is wrong by minutes, which the monitor accepts. Either it is ahead while the sensor is down, so that the
   * gap covers minutes that are observed once the clock is set; or it is set back afterwards, into a gap that was sent.
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
      // Half of the steps return to the right time, as after a correction.
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
  // The last minutes are not committed yet.
  for (const frame of life.frames) if (frame.trueMs > trueMs() - uncommittedMs) frame.mayBeLost = true;
  await stop(true);
  rmSync(directory, { recursive: true, force: true });
  return life;
}

/** Seconds to decades, in both directions. */
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
