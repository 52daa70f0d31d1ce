import { isSilent, type SensorState } from '#monitor/sensors/index.ts';
import { type Content, formatAge, formatCount, type Tone } from '#service-kit/pages/index.ts';

/** A one-sentence summary of a site's collection. */
export function siteState(
  sensors: readonly SensorState[],
  newestMinuteMs: number | undefined,
  nowMs: number,
  /** Sensors with contact and a problem. */
  troubled = 0,
): { tone: Tone; text: Content } {
  const silent = sensors.filter((sensor) => isSilent(sensor, nowMs)).length;
  const unheard = sensors.filter((sensor) => sensor.lastContactAtMs === null && !isSilent(sensor, nowMs));
  const counts = { sensors: sensors.length, silent, waiting: unheard.length, troubled };
  return collectionSentence(counts, newestMinuteMs, nowMs);
}

/** The same from numbers, for one site or for all. */
export function collectionSentence(
  counts: { sensors: number; silent: number; waiting: number; troubled?: number },
  newestMinuteMs: number | undefined,
  nowMs: number,
): { tone: Tone; text: string } {
  const { sensors, silent, waiting, troubled = 0 } = counts;
  if (sensors === 0) return { tone: 'neutral', text: 'No sensor is enrolled yet.' };
  const newest =
    newestMinuteMs === undefined
      ? 'No minute has arrived yet'
      : `Newest minute ended ${formatAge(newestMinuteMs + 60_000, nowMs)}`;
  if (silent === 0 && troubled > 0) {
    const some = `${formatCount(troubled)} of ${formatCount(sensors)} sensors ${troubled === 1 ? 'needs' : 'need'} attention`;
    return { tone: 'warn', text: `${newest}; ${some}.` };
  }
  if (silent === 0 && newestMinuteMs === undefined)
    return { tone: 'neutral', text: `${newest}; the first one ends within two minutes of a sensor’s start.` };
  if (silent === 0 && waiting > 0) {
    const some = `${formatCount(waiting)} of ${formatCount(sensors)} sensors had no contact yet`;
    return { tone: 'neutral', text: `${newest}; ${some}.` };
  }
  if (silent === 0) {
    const all = sensors === 1 ? 'the sensor reports' : `all ${formatCount(sensors)} sensors report`;
    return { tone: 'good', text: `${newest}; ${all}.` };
  }
  const some = `${formatCount(silent)} of ${formatCount(sensors)} sensors silent for over 3 min`;
  return { tone: silent === sensors ? 'bad' : 'warn', text: `${newest}; ${some}.` };
}
