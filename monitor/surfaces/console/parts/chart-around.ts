/** What stands around the charts of a site, an address or a device: reasons of gaps, and flags of what happened. */
import type { ChartData, Range } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { type FlagSubject, readChartFlags } from './chart-flags.ts';
import { chartReasons } from './chart-reasons.ts';

/** Gaps that one ribbon is made of. */
const gapsMax = 500;

export async function readAround(
  deps: ConsoleDeps,
  subject: FlagSubject,
  range: Range,
  nowMs: number,
): Promise<Pick<ChartData, 'reasons' | 'flags'>> {
  const [site, gaps, sensors, flags] = await Promise.all([
    deps.sites.find(subject.siteId),
    deps.traffic.listGaps(subject.siteId, range.fromMs, range.toMs, gapsMax),
    deps.sensors.list(subject.siteId),
    readChartFlags(deps, subject, range),
  ]);
  const enrolledMs = sensors.length === 0 ? null : Math.min(...sensors.map((sensor) => sensor.enrolledAtMs));
  // The history of a simulated site is older than its sensors.
  const firstSensorMs = site?.isSimulated ? range.fromMs : enrolledMs;
  return { reasons: chartReasons({ gaps, range, firstSensorMs, nowMs }), flags };
}
