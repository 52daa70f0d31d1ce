/** Results of probes as columns: column i of every list is one result. */
import type { ProbeResult } from './telemetry.ts';
import { type ProbeColumns, ProbeFailure as WireFailure } from './telemetry_pb.js';
import { checkColumns, countOf, malformed, minuteOf, namesOf } from './telemetry-values.ts';

const failures = namesOf(WireFailure);

/** The columns of these results; the caller has kept their bound. */
export function encodeProbes(results: readonly ProbeResult[]) {
  return {
    probe: results.map((one) => BigInt(one.probe)),
    minute: results.map((one) => BigInt(one.minute)),
    firstSent: results.map((one) => one.firstSentMs),
    sent: results.map((one) => one.sent),
    lost: results.map((one) => one.lost),
    rttMin: results.map((one) => one.rtt?.minUs ?? 0),
    rttMedian: results.map((one) => one.rtt?.medianUs ?? 0),
    rttMax: results.map((one) => one.rtt?.maxUs ?? 0),
    failure: results.map((one) => (one.failure ? failures.toWire[one.failure] : WireFailure.UNSPECIFIED)),
  };
}

/** The results in these columns. Throws `telemetry.malformed`. */
export function decodeProbes(columns: ProbeColumns): ProbeResult[] {
  const { length } = columns.probe;
  checkColumns('probes', length, Object.values(columns).filter(Array.isArray));
  const results = columns.probe.map((probe, i) => decodeResult(columns, countOf(probe, 'probes.probe'), i));
  const keys = new Set(results.map((one) => `${one.probe} ${one.minute} ${one.firstSentMs}`));
  if (keys.size !== results.length) throw malformed('a part of a minute of a probe occurs twice');
  return results;
}

function decodeResult(columns: ProbeColumns, probe: number, i: number): ProbeResult {
  const firstSentMs = columns.firstSent[i]!;
  if (firstSentMs >= 60_000) throw malformed('probes.first_sent lies after its minute');
  const sent = columns.sent[i]!;
  const lost = columns.lost[i]!;
  if (sent < 1 || sent > 1000 || lost > sent) throw malformed('probes.sent and lost do not fit together');
  const [minUs, medianUs, maxUs] = [columns.rttMin[i]!, columns.rttMedian[i]!, columns.rttMax[i]!];
  if (minUs > medianUs || medianUs > maxUs || maxUs > 60_000_000) {
    throw malformed('the round trips of a probe are not in order');
  }
  const failure = failures.fromWire.get(columns.failure[i]!) ?? null;
  return {
    probe,
    minute: minuteOf(columns.minute[i]!, 'probes.minute'),
    firstSentMs,
    sent,
    lost,
    rtt: lost < sent ? { minUs, medianUs, maxUs } : null,
    // A newer sensor may know reasons that we don't: then the attempt is lost without one.
    failure: lost > 0 ? failure : null,
  };
}
