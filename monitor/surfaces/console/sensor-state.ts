/** How a sensor is, in words: the worst first. The same facts as alerts judge, without waiting for one to open. */
import {
  captureStates,
  copiedVerdict,
  endingText,
  endingVerdict,
  lossMinutes,
  lossShare,
  outageMinutes,
  refusedSeconds,
  silentSeconds,
  skewSeconds,
  skewSecondsOf,
  skewText,
} from '#monitor/alerts/index.ts';
import type { LiveRate } from '#monitor/live/index.ts';
import { planTargetsMax, type SensorHealth } from '#monitor/sensors/index.ts';
import type { CaptureLoss, CaptureOutage } from '#monitor/traffic/index.ts';
import { formatCount, formatDuration, formatPercent, type Tone } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from './index.ts';

/** A minute arrives once a minute; after this one is late. */
const lateSeconds = 90;

/** What the facts of all sensors of a site are read with. */
export interface StateFacts {
  health: readonly SensorHealth[];
  outages: readonly CaptureOutage[];
  losses: readonly CaptureLoss[];
  /** The newest live window of each capture: what it loses shows there before the minute is over. */
  rates: readonly LiveRate[];
}

/** Reads them. */
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

export interface SensorTrouble {
  tone: Extract<Tone, 'bad' | 'warn' | 'neutral'>;
  /** For a badge: `eth0 down`. */
  short: string;
  /** A sentence that says what to do. */
  text: string;
}

/** Everything that is wrong with a sensor now; none: it reports. */
export function troublesOf(sensorId: number, facts: StateFacts): SensorTrouble[] {
  const sensor = facts.health.find((one) => one.id === sensorId);
  if (!sensor || sensor.contactAgeSeconds === null)
    return [{ tone: 'neutral', short: 'never heard', text: 'Enrolled, and never heard since.' }];
  const silentFor = sensor.contactAgeSeconds;
  if (silentFor > silentSeconds)
    return [
      { tone: 'bad', short: 'silent', text: `Silent: it was last heard ${formatDuration(silentFor)} ago.` },
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
  const counts = `${formatCount(leftOut.minuteRows)} of minutes and ${formatCount(leftOut.liveRows)} of live windows`;
  const text = `Counters that no link carries are left out: ${counts} since it was enrolled. Update the sensor, and check who holds its credential.`;
  return [{ tone: 'warn', short: 'counters left out', text }];
}

function credentialTroubles({ credential }: SensorHealth): SensorTrouble[] {
  const troubles: SensorTrouble[] = [];
  if (copiedVerdict(credential) === 'bad')
    troubles.push({
      tone: 'bad',
      short: 'credential copied',
      text: 'A credential of this sensor that was replaced is still in use: two hosts have a copy of it. Stop the copy, or remove this sensor and enrol its host again.',
    });
  if (endingVerdict(credential) === 'bad')
    troubles.push({
      tone: 'warn',
      short: 'credential ends',
      text: `The sensor has not renewed its credential: ${endingText(credential.leftSeconds!)}. Look into its log, or enrol it again.`,
    });
  return troubles;
}

function planTroubles({ planTargets }: SensorHealth): SensorTrouble[] {
  const leftOut = planTargets - planTargetsMax;
  if (leftOut <= 0) return [];
  const text = `${formatCount(leftOut)} of ${formatCount(planTargets)} protected addresses found no place in its plan. Move servers to other nodes, or check the node of this sensor.`;
  return [{ tone: 'warn', short: 'plan cut', text }];
}

function captureTroubles(sensor: SensorHealth, { outages }: StateFacts): SensorTrouble[] {
  return captureStates(sensor, outages)
    .filter((capture) => capture.isListening === false)
    .map(({ name, role }) => ({
      tone: 'bad',
      short: `${name} down`,
      text: `Capture ${name} (${role}) does not listen: its minutes are gaps. Check the interface on the host; the sensor tries again every few seconds.`,
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
      text: `The sensor is in contact, and ${text}. Set the clock of the host; the sensor then stamps what it kept again.`,
    },
  ];
}

function minuteTroubles({ refusal, minuteAgeSeconds }: SensorHealth): SensorTrouble[] {
  if (refusal !== null && refusal.ageSeconds < refusedSeconds)
    return [{ tone: 'bad', short: 'minutes refused', text: `An upload was not taken: ${refusal.message}.` }];
  if (minuteAgeSeconds !== null && minuteAgeSeconds < lateSeconds) return [];
  const since = minuteAgeSeconds === null ? '' : ` for ${formatDuration(minuteAgeSeconds)}`;
  return [
    { tone: 'bad', short: 'no minutes', text: `The sensor is in contact, and no minute arrived${since}.` },
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
