/**
 * What stands around the charts of probes: why there is no round trip at a time, and flags of what happened to the probes, beside those
 * of the site, which may be the cause.
 */
import { type Episode, titleOf } from '#monitor/alerts/index.ts';
import type { HistoryStep, ProbeState } from '#monitor/probes/index.ts';
import type { GapRow } from '#monitor/traffic/index.ts';
import type { StoredEntry } from '#service-kit/audit/index.ts';
import { type ChartFlag, type ChartReason, type Range, withQuery } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { type ChartAround, readChartFlags, readSiteReasons } from '../parts/chart-around.ts';

/** Alerts, open and resolved ones. */
const alertsMax = 50;
/** Stretches without an answer in one ribbon; more would be narrower than a pixel. */
const unansweredMax = 200;

/** A probe with its history in the range. */
export interface DrawnProbe {
  probe: ProbeState;
  history: readonly HistoryStep[];
}

/** One probe is told without its name. */
export async function readProbesAround(
  deps: ConsoleDeps,
  siteId: number,
  drawn: readonly DrawnProbe[],
  range: Range,
  nowMs: number,
): Promise<ChartAround> {
  const { fromMs, toMs } = range;
  const [siteReasons, siteFlags, trail, open, resolved] = await Promise.all([
    readSiteReasons(deps, siteId, { range, nowMs }, ofSensors),
    readChartFlags(deps, { siteId }, range),
    // Up to now, since the present state is what pauses are reckoned back from.
    deps.auditTrail.page({ operation: 'probe', fromMs }, {}),
    deps.alerts.listOpen(siteId, alertsMax),
    deps.alerts.listResolved(siteId, alertsMax),
  ]);
  const changesSinceMs = trail.nextBefore === null ? fromMs : trail.entries.at(-1)!.occurredAtMs;
  const ofProbes = probeReasons({ drawn, changes: trail.entries, changesSinceMs, range, nowMs });
  const flags = [...siteFlags, ...probeFlags(drawn, trail.entries, [...open, ...resolved])];
  return {
    reasons: [...ofProbes, ...siteReasons],
    flags: flags
      .filter(({ timeMs }) => timeMs >= fromMs && timeMs < toMs)
      .sort((a, b) => a.timeMs - b.timeMs),
  };
}

/** A capture that does not run keeps no sensor from measuring. */
export const ofSensors = (gaps: readonly GapRow[]): GapRow[] =>
  gaps.filter(({ reason }) => reason === 'sensor_down');

export interface ProbeReasonInput {
  drawn: readonly DrawnProbe[];
  /** Of the audit trail. */
  changes: readonly StoredEntry[];
  /** Earlier ones are not known. */
  changesSinceMs: number;
  range: Range;
  nowMs: number;
}

/** In the order in which they are told where several hold. */
export function probeReasons(input: ProbeReasonInput): ChartReason[] {
  const { drawn, range } = input;
  const isOne = drawn.length === 1;
  const of = ({ name }: ProbeState, text: string) => (isOne ? text : `${name}: ${text}`);
  const within = (fromMs: number, toMs: number, text: string, tone: 'warn' | 'neutral'): ChartReason[] => {
    const reason = { fromMs: Math.max(fromMs, range.fromMs), toMs: Math.min(toMs, range.toMs), text, tone };
    return reason.fromMs < reason.toMs ? [reason] : [];
  };
  // What a simulated site tells of the past is older than its probes.
  const beganOf = ({ probe, history }: DrawnProbe) =>
    Math.min(probe.addedAtMs, history[0]?.startMs ?? probe.addedAtMs);
  const firstMs = Math.min(...drawn.map(beganOf));
  const beforeAll = isOne ? [] : within(range.fromMs, firstMs, 'before the first probe was added', 'neutral');
  const quiet = drawn.flatMap((one) => [
    ...within(
      isOne ? range.fromMs : firstMs,
      beganOf(one),
      of(one.probe, 'before the probe was added'),
      'neutral',
    ),
    ...pausesOf(one.probe, input).flatMap((pause) =>
      within(pause.fromMs, pause.toMs, of(one.probe, 'the probe was paused'), 'neutral'),
    ),
  ]);
  const unanswered = drawn.flatMap(({ probe, history }) =>
    stretchesWithoutAnswer(history, range.stepSeconds * 1000).flatMap((one) =>
      within(one.fromMs, one.toMs, of(probe, 'no attempt was answered'), 'warn'),
    ),
  );
  return [...beforeAll, ...quiet, ...unanswered.slice(-unansweredMax)];
}

interface Stretch {
  fromMs: number;
  toMs: number;
}

/** Reckoned back from the present state over its changes. */
function pausesOf(probe: ProbeState, { changes, changesSinceMs, nowMs }: ProbeReasonInput): Stretch[] {
  const pauses: Stretch[] = [];
  let isPaused = !probe.isEnabled;
  let toMs = nowMs;
  const own = changes.filter((one) => isOf(one, probe)).toSorted((a, b) => b.occurredAtMs - a.occurredAtMs);
  for (const { before, after, occurredAtMs } of own) {
    if (enabledOf(before) === undefined || enabledOf(after) === undefined) continue;
    if (isPaused) pauses.push({ fromMs: occurredAtMs, toMs });
    isPaused = enabledOf(before) === false;
    toMs = occurredAtMs;
  }
  return isPaused ? [...pauses, { fromMs: Math.max(changesSinceMs, probe.addedAtMs), toMs }] : pauses;
}

const isOf = ({ subjectKind, subjectId }: StoredEntry, { id }: ProbeState) =>
  subjectKind === 'probe' && String(subjectId) === String(id);

const enabledOf = (state: unknown): unknown =>
  typeof state === 'object' && state !== null ? (state as { isEnabled?: unknown }).isEnabled : undefined;

/** Steps in which probes were sent and all of them lost, those that touch together. */
function stretchesWithoutAnswer(history: readonly HistoryStep[], stepMs: number): Stretch[] {
  const all: Stretch[] = [];
  for (const { startMs, sent, lost } of history) {
    if (sent === 0 || lost < sent) continue;
    const last = all.at(-1);
    if (last?.toMs === startMs) last.toMs += stepMs;
    else all.push({ fromMs: startMs, toMs: startMs + stepMs });
  }
  return all;
}

function probeFlags(
  drawn: readonly DrawnProbe[],
  changes: readonly StoredEntry[],
  episodes: readonly Episode[],
): ChartFlag[] {
  const ofChanges = changes.flatMap((entry): ChartFlag[] => {
    const found = drawn.find(({ probe }) => isOf(entry, probe));
    if (!found) return [];
    const href = withQuery('/audit', { subject: `probe ${found.probe.id}` });
    return [{ timeMs: entry.occurredAtMs, text: changeText(found.probe.name, entry), href, tone: 'info' }];
  });
  const keys = new Set(drawn.map(({ probe }) => `probe:${probe.id}`));
  const ofAlerts = episodes
    .filter(({ kind, subjectKey }) => kind === 'probe_down' && keys.has(subjectKey))
    .map(
      (one): ChartFlag => ({
        timeMs: one.openedAtMs,
        text: titleOf(one),
        href: `/alerts/${one.id}`,
        tone: 'bad',
      }),
    );
  return [...ofChanges, ...ofAlerts];
}

function changeText(name: string, { operation, after }: StoredEntry): string {
  if (operation === 'probe.add') return `${name} was added`;
  const enabled = enabledOf(after);
  if (enabled === undefined) return `${name} was changed`;
  return enabled ? `${name} was resumed` : `${name} was paused`;
}
