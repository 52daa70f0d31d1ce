/** What stands around the charts of a site, an address or a device: reasons of gaps, and flags of what happened. */
import type { GapRow, Traffic } from '#monitor/traffic/index.ts';
import type { ChartData, ChartReason } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { type FlagSubject, readChartFlags } from './chart-flags.ts';
import { chartReasons, type Pace, type ReasonInput } from './chart-reasons.ts';

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

// Which gaps of a site are a reason for charts of some addresses: those of sensors that may have observed them.

/** Minutes before and after a gap at which it is asked who observed the addresses. */
const besideMinutes = [1, 2, 5, 15, 60];
/** Minutes of addresses that are asked for; with more, the gaps of all sensors are told. */
const askedMax = 5000;

/**
 * Leaves out gaps around which other sensors observed the addresses and this one did not. Where none did, as of quiet addresses,
 * it is not known whose gaps they were.
 */
export async function gapsOfAddresses(
  { traffic }: { traffic: Pick<Traffic, 'listSpeakers' | 'listCaptures'> },
  siteId: number,
  addresses: readonly string[],
  gaps: readonly GapRow[],
): Promise<readonly GapRow[]> {
  const minutes = [...new Set(gaps.flatMap(minutesBeside))];
  if (minutes.length === 0 || minutes.length * addresses.length > askedMax) return gaps;
  const asked = minutes.flatMap((minute) => addresses.map((address) => ({ address, minute })));
  const [speakers, captures] = await Promise.all([
    traffic.listSpeakers(siteId, asked),
    traffic.listCaptures(siteId),
  ]);
  const sensorOf = new Map(captures.map(({ captureId, sensorId }) => [captureId, sensorId]));
  const byMinute = Map.groupBy(speakers, ({ minute }) => minute);
  return gaps.filter((gap) => {
    const beside = minutesBeside(gap).flatMap((minute) => byMinute.get(minute) ?? []);
    const sensors = new Set(beside.map(({ captureId }) => sensorOf.get(captureId)));
    // Captures of a removed sensor are not listed.
    return sensors.size === 0 || sensors.has(gap.sensorId) || sensors.has(undefined);
  });
}

const minutesBeside = ({ fromMinute, toMinute }: GapRow): number[] =>
  besideMinutes.flatMap((count) => [fromMinute - count * 60, toMinute + count * 60]);
