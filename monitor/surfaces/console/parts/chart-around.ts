/** What stands around the charts of a site, an address or a device: reasons of gaps, and flags of what happened. */
import type { GapRow } from '#monitor/traffic/index.ts';
import type { ChartData, ChartReason } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { type FlagSubject, readChartFlags } from './chart-flags.ts';
import { chartReasons, type Pace, type ReasonInput } from './chart-reasons.ts';
import { gapsOfAddresses } from './gaps-of-addresses.ts';

/** Gaps that one ribbon is made of. */
const gapsMax = 500;

export type ChartAround = Pick<ChartData, 'reasons' | 'flags'>;

export async function readAround(
  deps: ConsoleDeps,
  subject: FlagSubject,
  range: ReasonInput['range'],
  nowMs: number,
  pace?: Pace,
): Promise<ChartAround> {
  const { siteId, addresses } = subject;
  const [reasons, flags] = await Promise.all([
    readSiteReasons(deps, siteId, { range, nowMs, ...(pace && { pace }) }, (gaps) =>
      addresses === undefined ? gaps : gapsOfAddresses(deps, siteId, addresses, gaps),
    ),
    readChartFlags(deps, subject, range),
  ]);
  return { reasons, flags };
}

/** Why nothing was observed of a site; `counted` leaves the gaps that are a reason. */
export async function readSiteReasons(
  deps: ConsoleDeps,
  siteId: number,
  asked: Pick<ReasonInput, 'range' | 'nowMs' | 'pace'>,
  counted: (gaps: readonly GapRow[]) => Promise<readonly GapRow[]> | readonly GapRow[] = (gaps) => gaps,
): Promise<ChartReason[]> {
  const { range } = asked;
  const [site, gaps, sensors] = await Promise.all([
    deps.sites.find(siteId),
    deps.traffic.listGaps(siteId, range.fromMs, range.toMs, gapsMax),
    deps.sensors.list(siteId),
  ]);
  const enrolledMs = sensors.length === 0 ? null : Math.min(...sensors.map((sensor) => sensor.enrolledAtMs));
  // The history of a simulated site is older than its sensors.
  const firstSensorMs = site?.isSimulated ? range.fromMs : enrolledMs;
  return chartReasons({ ...asked, gaps: await counted(gaps), firstSensorMs });
}
