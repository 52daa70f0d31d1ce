import type { SensorState } from '#monitor/sensors/index.ts';
import { type Content, formatAge, formatCount, type Tone } from '#service-kit/pages/index.ts';

/** A sensor is heard of at least once a minute; after this it is late. */
const lateMs = 180_000;

export function isLate(sensor: SensorState, nowMs: number): boolean {
  return sensor.lastContactAtMs === null || nowMs - sensor.lastContactAtMs > lateMs;
}

/** One sentence of truth about a site's collection. */
export function siteState(
  sensors: readonly SensorState[],
  newestMinuteMs: number | undefined,
  nowMs: number,
): { tone: Tone; text: Content } {
  if (sensors.length === 0) return { tone: 'neutral', text: 'No sensor is enrolled here yet.' };
  const late = sensors.filter((sensor) => isLate(sensor, nowMs));
  const newest =
    newestMinuteMs === undefined
      ? 'No minute has arrived yet'
      : `Newest minute ended ${formatAge(newestMinuteMs + 60_000, nowMs)}`;
  if (late.length === 0) {
    const all =
      sensors.length === 1 ? 'the sensor reports' : `all ${formatCount(sensors.length)} sensors report`;
    return { tone: 'good', text: `${newest}; ${all}.` };
  }
  const some = `${formatCount(late.length)} of ${formatCount(sensors.length)} sensors silent for over 3 min`;
  return { tone: late.length === sensors.length ? 'bad' : 'warn', text: `${newest}; ${some}.` };
}
