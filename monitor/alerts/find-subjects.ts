/**
 * Every subject from the stored facts, by the database's clock. It uses no local time and no state in memory, so every
 * replica has the same result.
 */

import type { CaptureOutage } from '#monitor/facts/index.ts';
import type { Feeds } from '#monitor/feeds/index.ts';
import type { FailingRule, HandOff } from '#monitor/hand-off/index.ts';
import type { Inbox } from '#monitor/inbox/index.ts';
import type { ProbeMinutes, Probes } from '#monitor/probes/index.ts';
import type { OverdueScans, Scans } from '#monitor/scans/index.ts';
import type { SensorHealth } from '#monitor/sensors/index.ts';
import {
  leftOutOf as entriesLeftOut,
  type SectionCount,
  type Sensors,
  silentAfterSeconds,
} from '#monitor/sensors/index.ts';
import type { CaptureLoss, Traffic } from '#monitor/traffic/index.ts';
import {
  type CopyAge,
  oldCopySeconds,
  overdueSeconds,
  type Vulnerabilities,
} from '#monitor/vulnerabilities/index.ts';
import { judgeSystem, type System } from '#service-kit/system/index.ts';
import { copiedVerdict, endingVerdict } from './credential-health.ts';
import { between, type Subject, type SubjectStatus } from './episode.ts';

/** An older report of a sensor is not used. */
const conditionSeconds = 300;
/** Part of all packets; short bursts do not matter. */
export const lossShare = { goodBelow: 0.005, badFrom: 0.01 };
const lossPacketsMin = 100;
/** Number of complete minutes that are judged; all must be known. */
export const lossMinutes = 2;
export const spoolShare = { goodBelow: 0.7, badFrom: 0.8 };
/** Part of the file system in use. */
export const diskShare = { goodBelow: 0.93, badFrom: 0.95 };
/** Minutes in a row without an answer. */
export const downMinutes = 3;
const upMinutes = 2;
const probeSeconds = 300;
/** A sensor that scans fetches its plan every few seconds. */
const scanPlanSeconds = 600;

export interface FindSubjectsDeps extends FindOwnSubjectsDeps {
  sensors: Pick<Sensors, 'listHealth'>;
  traffic: Pick<Traffic, 'listLosses' | 'listOutages'>;
  probes: Pick<Probes, 'listNewestMinutes'>;
  scans: Pick<Scans, 'listOverdue'>;
  vulnerabilities: Pick<Vulnerabilities, 'readAge' | 'source'>;
}

/** `watchingSeconds`: how long the monitor has watched without a break. */
export async function findSubjects(deps: FindSubjectsDeps, watchingSeconds: number): Promise<Subject[]> {
  const [sensors, outages, losses, probes, scans, copy, own] = await Promise.all([
    deps.sensors.listHealth(),
    deps.traffic.listOutages(outageMinutes),
    deps.traffic.listLosses(lossMinutes),
    deps.probes.listNewestMinutes(downMinutes),
    deps.scans.listOverdue(),
    copyOf(deps),
    findOwnSubjects(deps, watchingSeconds),
  ]);
  const scansOf = new Map(scans.map((one) => [one.sensorId, one]));
  return [
    ...sensors.flatMap((sensor) => [
      silenceOf(sensor, watchingSeconds),
      storageOf(sensor),
      skewOf(sensor),
      missingOf(sensor, watchingSeconds),
      refusalOf(sensor),
      leftOutOf(sensor),
      planOf(sensor),
      ...scansOverdueOf(sensor, scansOf.get(sensor.id), watchingSeconds),
      ...credentialOf(sensor),
      ...captureStates(sensor, outages).map((capture) => deadCaptureOf(sensor, capture)),
    ]),
    ...losses.map(lossOf),
    ...probes.map(probeOf),
    ...copy,
    ...own,
  ];
}

async function copyOf({ vulnerabilities }: FindSubjectsDeps): Promise<Subject[]> {
  const age = await vulnerabilities.readAge();
  const seconds = overdueSeconds(age);
  return vulnerabilities.source && seconds !== null ? [copySubject(seconds, age)] : [];
}

function copySubject(seconds: number, { error }: CopyAge): Subject {
  return {
    kind: 'vulnerability_copy_old',
    key: 'vulnerability-copy',
    siteId: null,
    name: 'all sites',
    verdict: between(seconds, oldCopySeconds, oldCopySeconds),
    details: { overdue_seconds: Math.round(seconds), reason: error },
  };
}

/** Fields of a sensor that are the same for every kind. */
function ofSensor(sensor: SensorHealth): Pick<Subject, 'key' | 'siteId' | 'name'> {
  return { key: `sensor:${sensor.id}`, siteId: sensor.siteId, name: sensor.hostName };
}

function deadCaptureOf(sensor: SensorHealth, capture: CaptureHealth): Subject {
  return {
    kind: 'capture_dead',
    key: `capture:${sensor.id}:${capture.name}`,
    siteId: sensor.siteId,
    name: `${capture.name} of ${sensor.hostName}`,
    verdict: capture.isListening === null ? 'unknown' : capture.isListening ? 'good' : 'bad',
    details: { role: capture.role },
  };
}

function skewOf(sensor: SensorHealth): Subject {
  const skew = skewSecondsOf(sensor);
  return {
    kind: 'clock_skew',
    ...ofSensor(sensor),
    verdict: skew === null ? 'unknown' : between(Math.abs(skew), skewSeconds.goodBelow, skewSeconds.badFrom),
    details: { skew_seconds: skew === null ? null : Math.round(skew) },
  };
}

/**
 * The arrival of minutes counts, not their times: a sensor that catches up, or whose clock is behind, does send
 * minutes.
 */
function missingOf(sensor: SensorHealth, watchingSeconds: number): Subject {
  const age = sensor.minuteAgeSeconds ?? sensor.enrolledAgeSeconds;
  const isHeard = sensor.contactAgeSeconds !== null && sensor.contactAgeSeconds <= heardSeconds;
  const isWatched = watchingSeconds > missingSeconds.badFrom;
  const verdict: SubjectStatus =
    age < missingSeconds.goodBelow
      ? 'good'
      : isHeard && isWatched && age >= missingSeconds.badFrom
        ? 'bad'
        : 'unknown';
  return {
    kind: 'minutes_missing',
    ...ofSensor(sensor),
    verdict,
    details: { missing_seconds: Math.round(age) },
  };
}

/** Good when the sensor has contact and no upload was refused for a while. */
function refusalOf(sensor: SensorHealth): Subject {
  const { refusal } = sensor;
  const isHeard = sensor.contactAgeSeconds !== null && sensor.contactAgeSeconds <= heardSeconds;
  const isRefused = refusal !== null && refusal.ageSeconds < refusedSeconds;
  return {
    kind: 'minutes_refused',
    ...ofSensor(sensor),
    verdict: isRefused ? 'bad' : isHeard ? 'good' : 'unknown',
    details: { code: refusal?.code ?? null, why: refusal?.message ?? null },
  };
}

/** Like refusals: good when no counter was left out for a while. */
function leftOutOf(sensor: SensorHealth): Subject {
  const { leftOut } = sensor;
  const isHeard = sensor.contactAgeSeconds !== null && sensor.contactAgeSeconds <= heardSeconds;
  const isRecent = leftOut !== null && leftOut.ageSeconds < refusedSeconds;
  return {
    kind: 'counters_left_out',
    ...ofSensor(sensor),
    verdict: isRecent ? 'bad' : isHeard ? 'good' : 'unknown',
    details: { minute_rows: leftOut?.minuteRows ?? 0, live_rows: leftOut?.liveRows ?? 0 },
  };
}

function planOf(sensor: SensorHealth): Subject {
  const cut = sensor.plan.filter((section) => entriesLeftOut(section) > 0);
  const sum = (numberOf: (section: SectionCount) => number) =>
    cut.reduce((total, section) => total + numberOf(section), 0);
  return {
    kind: 'plan_cut',
    ...ofSensor(sensor),
    verdict: cut.length > 0 ? 'bad' : 'good',
    details: {
      // Name from when protected addresses were the only list; receivers of notifications use it.
      targets: sum(({ entries }) => entries),
      left_out: sum(entriesLeftOut),
      lists: cut.map(({ label }) => label).join(', '),
    },
  };
}

/** Sensors that never asked for a scan plan do not scan. Reports wait at a sensor while the monitor is down. */
function scansOverdueOf(
  sensor: SensorHealth,
  scans: OverdueScans | undefined,
  watchingSeconds: number,
): Subject[] {
  if (!scans) return [];
  const isHeard = sensor.contactAgeSeconds !== null && sensor.contactAgeSeconds <= heardSeconds;
  const isKnown = isHeard && watchingSeconds > scanPlanSeconds;
  const isLate = scans.overdue > 0 || scans.fetchedAgeSeconds > scanPlanSeconds;
  const { targets, overdue, fetchedAgeSeconds } = scans;
  return [
    {
      kind: 'scans_overdue',
      ...ofSensor(sensor),
      verdict: !isLate ? 'good' : isKnown ? 'bad' : 'unknown',
      details: { targets, overdue, fetched_seconds: Math.round(fetchedAgeSeconds) },
    },
  ];
}

function credentialOf(sensor: SensorHealth): Subject[] {
  const { credential } = sensor;
  const left = credential.leftSeconds;
  return [
    {
      kind: 'credential_ending',
      ...ofSensor(sensor),
      verdict: endingVerdict(credential),
      details: {
        left_seconds: left === null ? null : Math.round(left),
        days_left: left === null ? null : Math.floor(left / 86_400),
      },
    },
    { kind: 'credential_copied', ...ofSensor(sensor), verdict: copiedVerdict(credential), details: {} },
  ];
}

function silenceOf(sensor: SensorHealth, watchingSeconds: number): Subject {
  const age = sensor.contactAgeSeconds;
  // After a pause of the monitor itself, missing contacts mean nothing.
  const verdict: SubjectStatus =
    age === null
      ? 'unknown'
      : age <= heardSeconds
        ? 'good'
        : age > silentAfterSeconds && watchingSeconds > silentAfterSeconds
          ? 'bad'
          : 'unknown';
  return {
    kind: 'sensor_silent',
    ...ofSensor(sensor),
    verdict,
    details: { silent_seconds: age === null ? null : Math.round(age) },
  };
}

function storageOf(sensor: SensorHealth): Subject {
  const { condition } = sensor;
  const subject = { kind: 'storage_pressure' as const, ...ofSensor(sensor) };
  if (!condition || condition.ageSeconds > conditionSeconds)
    return { ...subject, verdict: 'unknown', details: {} };
  const spool = condition.spoolPendingBytes / Math.max(1, condition.spoolBytesMax);
  const disk = 1 - condition.diskFreeBytes / Math.max(1, condition.diskBytes);
  const verdicts = [
    condition.isPaused ? 'bad' : 'good',
    between(spool, spoolShare.goodBelow, spoolShare.badFrom),
    between(disk, diskShare.goodBelow, diskShare.badFrom),
  ] as const;
  const verdict = verdicts.includes('bad') ? 'bad' : verdicts.includes('unknown') ? 'unknown' : 'good';
  const details = {
    collection_paused: condition.isPaused,
    spool_share: rounded(spool),
    disk_share: rounded(disk),
  };
  return { ...subject, verdict, details };
}

function lossOf(loss: CaptureLoss): Subject {
  const lost = loss.kernelDropped + loss.parserDropped;
  // Packets dropped by the kernel are not in the packet count; those dropped by the parser are.
  const share = lost / Math.max(1, loss.packets + loss.kernelDropped);
  const isKnown = loss.minutes >= lossMinutes;
  const measured = lost < lossPacketsMin ? 'good' : between(share, lossShare.goodBelow, lossShare.badFrom);
  return {
    kind: 'capture_loss',
    key: `capture:${loss.sensorId}:${loss.name}`,
    siteId: loss.siteId,
    name: `${loss.name} of ${loss.hostName}`,
    verdict: isKnown ? measured : 'unknown',
    details: {
      lost_share: rounded(share),
      kernel_dropped: loss.kernelDropped,
      parser_dropped: loss.parserDropped,
      minutes: loss.minutes,
    },
  };
}

function probeOf(probe: ProbeMinutes): Subject {
  const { minutes } = probe;
  const isFresh = probe.ageSeconds !== null && probe.ageSeconds <= probeSeconds;
  const isDown = minutes.length >= downMinutes && minutes.every((one) => !one.isUp);
  const isUp = minutes.length >= upMinutes && minutes.slice(0, upMinutes).every((one) => one.isUp);
  return {
    kind: 'probe_down',
    key: `probe:${probe.probeId}`,
    siteId: probe.siteId,
    name: probe.name,
    verdict: !isFresh ? 'unknown' : isDown ? 'bad' : isUp ? 'good' : 'unknown',
    details: { reason: minutes.find((one) => one.failure !== null)?.failure ?? null },
  };
}

function rounded(share: number): number {
  return Math.round(share * 10_000) / 10_000;
}

// Subjects of the monitor itself, of no site but hand-off: its disks and loops, feeds among them, the inbox, hand-off.

/** Age of the oldest upload that waits; they normally wait less than a second. */
export const waitingSeconds = { goodBelow: 30, badFrom: 120 };

interface FindOwnSubjectsDeps {
  system: Pick<System, 'read'>;
  feeds: Pick<Feeds, 'all'>;
  inbox: Pick<Inbox, 'state'>;
  handOff: Pick<HandOff, 'listFailing'>;
}

async function findOwnSubjects(deps: FindOwnSubjectsDeps, watchingSeconds: number): Promise<Subject[]> {
  const [state, inbox, rules] = await Promise.all([
    deps.system.read(),
    deps.inbox.state(),
    deps.handOff.listFailing(),
  ]);
  const titles = new Map(deps.feeds.all.map(({ feed }) => [feed.loop, `feed ${feed.title}`]));
  return [
    ...judgeSystem(state, watchingSeconds).map((subject) => ({
      ...subject,
      siteId: null,
      name: titles.get(subject.name) ?? subject.name,
    })),
    {
      kind: 'uploads_waiting',
      key: 'inbox',
      siteId: null,
      name: 'inbox',
      verdict: between(inbox.oldestSeconds ?? 0, waitingSeconds.goodBelow, waitingSeconds.badFrom),
      details: { pending: inbox.pending, oldest_seconds: Math.round(inbox.oldestSeconds ?? 0) },
    },
    ...rules.map(failingRule),
  ];
}

function failingRule(rule: FailingRule): Subject {
  return {
    kind: 'hand_off_failing',
    key: `hand-off:${rule.id}`,
    siteId: rule.siteId,
    name: rule.name,
    verdict: rule.failing > 0 ? 'bad' : 'good',
    details: { failing: rule.failing, error: rule.lastError },
  };
}

// The state of a sensor's captures and clock from its newest report, for alerts and pages.

/** A sensor has contact at least once a minute. */
const heardSeconds = 120;
/** An older report of clock and captures is not used; sensors report twice a minute. */
const toldSeconds = 90;
/** Allowed error of a sensor's clock. */
export const skewSeconds = { goodBelow: 20, badFrom: 30 };
/** Minutes arrive once a minute; with one late minute, this means that the second is missing. */
export const missingSeconds = { goodBelow: 120, badFrom: 150 };
/** A sensor retries a refused upload, or skips it, at least this often. */
export const refusedSeconds = 180;
/** Number of minutes in which captures are looked up. */
export const outageMinutes = 5;

interface CaptureHealth {
  name: string;
  role: 'uplink' | 'bridge';
  /** Null: unknown. */
  isListening: boolean | null;
}

/** How far the sensor's clock is ahead; negative: behind; null: no recent report. */
export function skewSecondsOf({ condition }: Pick<SensorHealth, 'condition'>): number | null {
  return condition && condition.ageSeconds <= toldSeconds ? condition.skewSeconds : null;
}

/**
 * The sensor's captures: from its report, or for an older sensor from its minutes and gaps. A capture that is no longer
 * reported was removed.
 */
export function captureStates(sensor: SensorHealth, outages: readonly CaptureOutage[]): CaptureHealth[] {
  const { condition } = sensor;
  if (condition?.captures && condition.ageSeconds <= toldSeconds) return condition.captures;
  const known = outages.filter((one) => one.sensorId === sensor.id);
  const isHeard = sensor.minuteAgeSeconds !== null && sensor.minuteAgeSeconds <= heardSeconds;
  return known.flatMap<CaptureHealth>(({ name, role, newestMinute, failedThrough }) => {
    // The minute of a failure may also be the minute in which the capture began to listen again.
    if (failedThrough !== null && failedThrough > (newestMinute ?? 0))
      return [{ name, role, isListening: false }];
    if (newestMinute !== null) return [{ name, role, isListening: true }];
    return isHeard ? [] : [{ name, role, isListening: null }];
  });
}
