/**
 * Attack and expected traffic of an allocation's minutes. Pure.
 *
 * Attack traffic is what detectors counted for incidents of this very address, at the capture that counts or else at the one
 * that saw most of it. Zero is said only where the capture that counts watched the whole minute inside one epoch that covers the
 * address; everything else is unknown, with its reason (NET-2.4.5). An attack minute that the capture that counts did not check has
 * its reason too (NET-2.4.3). Expected traffic is the mean of at least five minutes of the same allocation in the thirty before,
 * observed as a whole and known to be without attacks (NET-2.4.6). Our own port scans are no traffic to expect: they are left out. What a
 * filter dropped behind the capture is taken off its attack traffic, as it is off the minute.
 */
import type { MinuteReason } from '#contracts/minute-reasons.ts';
import type { AttackPeriods, UnassignablePeriod } from '#monitor/incidents/index.ts';
import type { ObservedMinute } from '#monitor/traffic/index.ts';
import type { DetectorReport } from '#monitor/views/detector-store.ts';

/** Minutes that expected values are made of: how far back, and how many at least. */
export const expectedSeconds = 30 * 60;
const healthyMin = 5;
/** A capture starts a minute some milliseconds late. */
const healthyCoverage = 0.99;

/** What was made of a minute, as it is stored and sent. */
export interface JudgedMinute {
  /** Seconds since 1970. */
  minute: number;
  /** What it was judged by. */
  input: string;
  /** What expected values are made of: both directions together, without our own port scans. */
  bytes: number;
  packets: number | null;
  isHealthy: boolean;
  ddosBytes: number | null;
  ddosPackets: number | null;
  /** False for an attack minute whose own source did not check it (NET-2.4.3). */
  isChecked: boolean;
  expectedBps: number | null;
  expectedPps: number | null;
  reason: MinuteReason | null;
}

/** An attack as it concerns one address: its own, or one that no address can be told to have. */
export interface Concern {
  incidentId: string;
  isOwn: boolean;
  fromMs: number;
  toMs: number;
  /** Sensors whose captures it concerns; null: all. */
  sensorIds: readonly number[] | null;
}

type Judged = Pick<JudgedMinute, 'ddosBytes' | 'ddosPackets' | 'isChecked' | 'reason'>;

/** Everything that a verdict depends on besides the minutes before it, as text. */
function inputOf(minute: ObservedMinute, report: DetectorReport, concerns: readonly Concern[]): string {
  const { rxBytes, txBytes, packets, ownScan, dropped, coverage, captureId } = minute;
  const { isComplete, isCovered, attack } = report;
  const ids = during(minute.minute, report, concerns).map(
    ({ incidentId, isOwn }) => `${incidentId}${isOwn ? '' : '?'}`,
  );
  return JSON.stringify([
    rxBytes,
    txBytes,
    packets,
    coverage,
    captureId,
    isComplete,
    isCovered,
    attack,
    ids.sort(),
    ...(ownScan ? [ownScan] : []),
    ...(dropped ? [dropped] : []),
  ]);
}

/** A minute without the values that depend on others. */
export function judgeMinute(
  minute: ObservedMinute,
  report: DetectorReport,
  concerns: readonly Concern[],
): Omit<JudgedMinute, 'expectedBps' | 'expectedPps'> {
  const { rxBytes, txBytes, packets, ownScan, coverage } = minute;
  const judged = judgeAttack(minute, report, during(minute.minute, report, concerns));
  return {
    minute: minute.minute,
    input: inputOf(minute, report, concerns),
    bytes: rxBytes + txBytes - (ownScan ? ownScan.rxBytes + ownScan.txBytes : 0),
    packets: packets === null ? null : packets - (ownScan?.packets ?? 0),
    isHealthy: judged.ddosBytes === 0 && coverage !== null && coverage >= healthyCoverage,
    ...judged,
  };
}

const unknown = (reason: MinuteReason): Judged => ({
  ...{ ddosBytes: null, ddosPackets: null, isChecked: true },
  reason,
});

function judgeAttack(
  { captureId, packets, dropped }: ObservedMinute,
  { isComplete, isCovered, attack }: DetectorReport,
  concerns: readonly Concern[],
): Judged {
  if (concerns.some(({ isOwn }) => !isOwn)) return unknown('unassignable');
  if (attack && attack.bytes > 0) {
    // The sensor counted for an incident that the monitor did not find to be this address's.
    if (concerns.length === 0) return unknown('unassignable');
    const isOfCapture = attack.captureId === captureId;
    const isChecked = isComplete && isOfCapture;
    const { countedBytes = 0, countedPackets = 0 } = (isOfCapture ? dropped : null) ?? {};
    return {
      ddosBytes: Math.max(0, attack.bytes - countedBytes),
      ddosPackets: packets === null ? null : Math.max(0, attack.packets - countedPackets),
      isChecked,
      reason: isChecked ? null : 'detector_incomplete',
    };
  }
  if (!isComplete) return unknown('detector_incomplete');
  if (!isCovered) return unknown('no_epoch');
  return { ddosBytes: 0, ddosPackets: 0, isChecked: true, reason: null };
}

function during(minute: number, { sensorId }: DetectorReport, concerns: readonly Concern[]): Concern[] {
  return concerns.filter(
    ({ fromMs, toMs, sensorIds }) =>
      fromMs < (minute + 60) * 1000 &&
      toMs >= minute * 1000 &&
      (sensorIds === null || sensorId === null || sensorIds.includes(sensorId)),
  );
}

/** The attacks of a site as they concern an address; one on a capture or a prefix concerns what the sensors that reported it count. */
export function concernsOf(
  address: string,
  { attacks, unassignable }: AttackPeriods,
  isInPrefix: (address: string, prefix: string) => boolean,
): Concern[] {
  const of = (
    {
      incidentId,
      startedAtMs,
      endedAtMs,
    }: Pick<UnassignablePeriod, 'incidentId' | 'startedAtMs' | 'endedAtMs'>,
    isOwn: boolean,
    sensorIds: readonly number[] | null = null,
  ): Concern => ({ incidentId, isOwn, sensorIds, fromMs: startedAtMs, toMs: endedAtMs });
  return [
    ...attacks.filter((one) => one.address === address).map((one) => of(one, true)),
    ...unassignable
      .filter(({ kind, target }) => kind === 'capture' || isInPrefix(address, target))
      .map((one) =>
        of(one, false, one.kind === 'host' ? null : one.captures.map(({ sensorId }) => sensorId)),
      ),
  ];
}

/** Expected traffic of a minute from those before it, in any order. */
export function expect(
  minute: number,
  before: Iterable<Pick<JudgedMinute, 'minute' | 'bytes' | 'packets' | 'isHealthy'>>,
): Pick<JudgedMinute, 'expectedBps' | 'expectedPps'> {
  const healthy = [...before].filter(
    (one) => one.isHealthy && one.minute < minute && one.minute >= minute - expectedSeconds,
  );
  const mean = (values: readonly number[]) =>
    values.length < healthyMin ? null : values.reduce((sum, value) => sum + value, 0) / values.length / 60;
  const bytes = mean(healthy.map((one) => one.bytes * 8));
  return {
    expectedBps: bytes,
    expectedPps: mean(healthy.flatMap(({ packets }) => (packets === null ? [] : [packets]))),
  };
}
