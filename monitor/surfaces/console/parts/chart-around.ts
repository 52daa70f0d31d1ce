/** What stands around the charts of a site, an address or a device: reasons of gaps, and flags of what happened. */
import type { GapRow } from '#monitor/traffic/index.ts';
import type { ChartData, ChartReason, Range } from '#service-kit/pages/index.ts';
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
  const [reasons, flags] = await Promise.all([
    readSiteReasons(deps, subject.siteId, range, nowMs),
    readChartFlags(deps, subject, range),
  ]);
  return { reasons, flags };
}

/** Why nothing was observed of a site; `counted` leaves the gaps that are a reason. */
export async function readSiteReasons(
  deps: ConsoleDeps,
  siteId: number,
  range: Range,
  nowMs: number,
  counted: (gaps: readonly GapRow[]) => readonly GapRow[] = (gaps) => gaps,
): Promise<ChartReason[]> {
  const [site, gaps, sensors] = await Promise.all([
    deps.sites.find(siteId),
    deps.traffic.listGaps(siteId, range.fromMs, range.toMs, gapsMax),
    deps.sensors.list(siteId),
  ]);
  const enrolledMs = sensors.length === 0 ? null : Math.min(...sensors.map((sensor) => sensor.enrolledAtMs));
  // The history of a simulated site is older than its sensors.
  const firstSensorMs = site?.isSimulated ? range.fromMs : enrolledMs;
  return chartReasons({ gaps: counted(gaps), range, firstSensorMs, nowMs });
}
