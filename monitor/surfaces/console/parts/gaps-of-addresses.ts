/** Which gaps of a site are a reason for charts of some addresses: those of sensors that may have observed them. */
import type { GapRow, Traffic } from '#monitor/traffic/index.ts';

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
