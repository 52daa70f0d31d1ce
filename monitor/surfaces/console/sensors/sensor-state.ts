/**
 * The state of a sensor in text, the worst problem first, from the same facts as alerts, without the delay of an alert.
 */

import { CodedError } from '#common/errors/index.ts';
import {
  captureStates,
  copiedVerdict,
  endingText,
  endingVerdict,
  lossMinutes,
  lossShare,
  outageMinutes,
  refusedSeconds,
  skewSeconds,
  skewSecondsOf,
  skewText,
} from '#monitor/alerts/index.ts';
import type { CaptureOutage } from '#monitor/facts/index.ts';
import type { Live, LiveRate } from '#monitor/live/index.ts';
import type { SensorState } from '#monitor/sensors/index.ts';
import { isSilentFor, leftOutOf, type SensorHealth } from '#monitor/sensors/index.ts';
import type { CaptureLoss } from '#monitor/traffic/index.ts';
import { formatCount, formatDuration, formatPercent, type Tone } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { nodeServersMax } from './sensor-parts.ts';

/** Minutes arrive once a minute; after this time one is late. */
const lateSeconds = 90;

/** Facts for all sensors of a site. */
export interface StateFacts {
  health: readonly SensorHealth[];
  outages: readonly CaptureOutage[];
  losses: readonly CaptureLoss[];
  /** The newest live window of each capture, which shows losses before the end of the minute. */
  rates: readonly LiveRate[];
}

export interface SensorTrouble {
  tone: Extract<Tone, 'bad' | 'warn' | 'neutral'>;
  /** For a badge: `eth0 down`. */
  short: string;
  /** A sentence with the fix. */
  text: string;
}

/** All present problems of a sensor; none when it reports. */
export function troublesOf(sensorId: number, facts: StateFacts): SensorTrouble[] {
  const sensor = facts.health.find((one) => one.id === sensorId);
  if (!sensor || sensor.contactAgeSeconds === null)
    return [{ tone: 'neutral', short: 'no contact yet', text: 'Enrolled, but no contact yet.' }];
  const silentFor = sensor.contactAgeSeconds;
  if (isSilentFor(silentFor))
    return [
      {
        tone: 'bad',
        short: 'silent',
        text: `Silent: the last contact was ${formatDuration(silentFor)} ago.`,
      },
    ];
  return [
    ...captureTroubles(sensor, facts),
    ...clockTroubles(sensor),
    ...minuteTroubles(sensor),
    ...lossTroubles(sensor, facts),
    ...leftOutTroubles(sensor),
    ...planTroubles(sensor),
    ...credentialTroubles(sensor),
  ];
}

function leftOutTroubles({ leftOut }: SensorHealth): SensorTrouble[] {
  if (leftOut === null || leftOut.ageSeconds >= refusedSeconds) return [];
  const counts = `${formatCount(leftOut.minuteRows)} in minutes and ${formatCount(leftOut.liveRows)} in live windows`;
  const text = `Impossible counters are ignored: ${counts} since it was enrolled. Update the sensor, and check who holds its credential.`;
  return [{ tone: 'warn', short: 'counters ignored', text }];
}

function credentialTroubles({ credential }: SensorHealth): SensorTrouble[] {
  const troubles: SensorTrouble[] = [];
  if (copiedVerdict(credential) === 'bad')
    troubles.push({
      tone: 'bad',
      short: 'credential copied',
      text: 'A replaced credential of this sensor is still in use: two hosts have a copy of it. Stop the copy, or remove this sensor and enrol its host again.',
    });
  if (endingVerdict(credential) === 'bad')
    troubles.push({
      tone: 'warn',
      short: 'credential expires',
      text: `The sensor has not renewed its credential: ${endingText(credential.leftSeconds!)}. Check its log, or enrol it again.`,
    });
  return troubles;
}

function planTroubles({ plan }: SensorHealth): SensorTrouble[] {
  return plan
    .filter((section) => leftOutOf(section) > 0)
    .map((section) => ({
      tone: 'warn',
      short: 'plan cut',
      text: `${formatCount(leftOutOf(section))} of ${formatCount(section.entries)} ${section.label} have no room in its plan. ${section.advice}`,
    }));
}

function captureTroubles(sensor: SensorHealth, { outages }: StateFacts): SensorTrouble[] {
  return captureStates(sensor, outages)
    .filter((capture) => capture.isListening === false)
    .map(({ name, role }) => ({
      tone: 'bad',
      short: `${name} down`,
      text: `Capture ${name} (${role}) does not listen: its minutes are gaps. Check the interface on the host; the sensor retries every few seconds.`,
    }));
}

function clockTroubles(sensor: SensorHealth): SensorTrouble[] {
  const skew = skewSecondsOf(sensor);
  if (skew === null || Math.abs(skew) < skewSeconds.badFrom) return [];
  const text = skewText(skew);
  return [
    {
      tone: 'bad',
      short: text.replace('its clock is', 'clock'),
      text: `The sensor has contact, but ${text}. Set the clock of the host; the sensor then corrects the times of stored minutes.`,
    },
  ];
}

function minuteTroubles({ refusal, minuteAgeSeconds }: SensorHealth): SensorTrouble[] {
  if (refusal !== null && refusal.ageSeconds < refusedSeconds)
    return [{ tone: 'bad', short: 'minutes refused', text: `An upload was refused: ${refusal.message}.` }];
  if (minuteAgeSeconds !== null && minuteAgeSeconds < lateSeconds) return [];
  const since = minuteAgeSeconds === null ? '' : ` for ${formatDuration(minuteAgeSeconds)}`;
  return [
    { tone: 'bad', short: 'no minutes', text: `The sensor has contact, but no minute arrived${since}.` },
  ];
}

function lossTroubles(sensor: SensorHealth, { losses, rates }: StateFacts): SensorTrouble[] {
  const shares = new Map<string, number>();
  const minutes = losses.map((one) => ({ ...one, capture: one.name }));
  for (const one of [...minutes, ...rates]) {
    if (one.sensorId !== sensor.id) continue;
    const share = (one.kernelDropped + one.parserDropped) / Math.max(1, one.packets + one.kernelDropped);
    shares.set(one.capture, Math.max(shares.get(one.capture) ?? 0, share));
  }
  return [...shares]
    .filter(([, share]) => share >= lossShare.badFrom)
    .map(([name, share]) => ({
      tone: 'warn',
      short: `${name} loses packets`,
      text: `Capture ${name} loses ${formatPercent(share, 1)} of its packets.`,
    }));
}

// What the pages of sensors show, read from the features.

const dayMs = 86_400_000;
const gapsMax = 500;
const setAsideMax = 20;
const foreignMax = 100;
const spoofedMax = 100;

/** What is known of one sensor, and of its site as far as the sensor's page needs it. */
export type SensorData = Awaited<ReturnType<typeof readSensor>>;

export async function readSensor(deps: ConsoleDeps, sensor: SensorState, nowMs: number) {
  const { siteId, id } = sensor;
  const { sensors, traffic } = deps;
  const [conditions, captures, rates, hosts, gaps, nodes, foreign, setAside, spoofed, servers] =
    await Promise.all([
      sensors.listConditions(siteId),
      traffic.listCaptures(siteId),
      ratesOf(deps.live, siteId),
      sensors.listInterfaces(siteId),
      traffic.listGaps(siteId, nowMs - dayMs, nowMs, gapsMax),
      sensors.listNodes(siteId),
      traffic.listForeign(siteId, nowMs - dayMs, nowMs, id, foreignMax),
      deps.setAsides.listOfSensor(siteId, id, setAsideMax),
      deps.spoofing.listOfSensor(siteId, id, nowMs - dayMs, spoofedMax),
      readNodeServers(deps, sensor),
    ]);
  const facts = await stateFactsOf(deps, siteId, rates);
  return { conditions, captures, rates, hosts, gaps, nodes, foreign, setAside, spoofed, servers, facts };
}

/** Servers in the clusters that its node may belong to. */
async function readNodeServers(deps: ConsoleDeps, { siteId, node, clusterId }: SensorState) {
  const mapped = (await deps.sites.listClusters()).filter((mapping) => mapping.siteId === siteId);
  const clusterIds = mapped.map((mapping) => mapping.clusterId);
  const own = clusterId === null ? clusterIds : clusterIds.filter((id) => id === clusterId);
  const found = await deps.inventory.listNodeServers(own, node, nodeServersMax + 1);
  return { rows: found.slice(0, nodeServersMax), isComplete: found.length <= nodeServersMax };
}

/** The newest rates; empty when the live store does not answer, because the rest of the page does not need them. */
export async function ratesOf(live: Live, siteId: number): Promise<LiveRate[]> {
  try {
    return await live.listRates(siteId);
  } catch (error) {
    if (error instanceof CodedError && error.code.startsWith('live.')) return [];
    throw error;
  }
}

/** The facts for the states of all sensors of a site. */
export async function stateFactsOf(
  deps: Pick<ConsoleDeps, 'sensors' | 'traffic'>,
  siteId: number,
  rates: readonly LiveRate[],
): Promise<StateFacts> {
  const [health, outages, newest, losses] = await Promise.all([
    deps.sensors.listHealth(siteId),
    deps.traffic.listOutages(outageMinutes),
    deps.traffic.listLosses(1),
    deps.traffic.listLosses(lossMinutes),
  ]);
  return { health, outages, losses: [...newest, ...losses], rates };
}
