/** What an episode is, and when one opens and resolves. */

export const alertKinds = [
  'sensor_silent',
  'capture_dead',
  'capture_loss',
  'clock_skew',
  'counters_left_out',
  'credential_copied',
  'credential_ending',
  'minutes_missing',
  'minutes_refused',
  'plan_cut',
  'probe_down',
  'storage_pressure',
] as const;
export type AlertKind = (typeof alertKinds)[number];

/** What the newest facts say of one subject. `unknown` covers what lies between bad and good as well. */
export type Verdict = 'bad' | 'good' | 'unknown';

/** A thing that may be in trouble, as it is now. A subject that is in no list is gone. */
export interface Subject {
  kind: AlertKind;
  /** `sensor:4`, `capture:4:eth0`, `probe:7`. */
  key: string;
  siteId: number;
  name: string;
  verdict: Verdict;
  /** What was measured, for people. */
  details: Record<string, string | number | boolean | null>;
}

export interface OpenEpisode {
  id: number;
  kind: AlertKind;
  subjectKey: string;
  /** Since when the subject has looked well. */
  goodSinceMs: number | null;
}

/** How long a subject must look well without a break before its episode resolves. */
export const resolveSeconds: Record<AlertKind, number> = {
  sensor_silent: 60,
  capture_dead: 60,
  capture_loss: 120,
  clock_skew: 60,
  counters_left_out: 60,
  credential_copied: 60,
  credential_ending: 60,
  minutes_missing: 60,
  minutes_refused: 60,
  plan_cut: 60,
  probe_down: 60,
  storage_pressure: 120,
};

export type Step =
  | { do: 'nothing' }
  | { do: 'open' }
  /** It looks well since now. */
  | { do: 'recover' }
  /** It does not look well any more, or nobody knows. */
  | { do: 'relapse' }
  | { do: 'resolve'; resolution: 'recovered' | 'removed' };

/**
 * What becomes of a subject's episode. Only a recovery that was seen from its beginning to its end resolves one:
 * what is unknown begins it anew, so silence never passes for health.
 */
export function judge(
  kind: AlertKind,
  open: Pick<OpenEpisode, 'goodSinceMs'> | null,
  verdict: Verdict | 'gone',
  nowMs: number,
): Step {
  if (!open) return { do: verdict === 'bad' ? 'open' : 'nothing' };
  if (verdict === 'gone') return { do: 'resolve', resolution: 'removed' };
  if (verdict !== 'good') return { do: open.goodSinceMs === null ? 'nothing' : 'relapse' };
  if (open.goodSinceMs === null) return { do: 'recover' };
  const isOver = nowMs - open.goodSinceMs >= resolveSeconds[kind] * 1000;
  return isOver ? { do: 'resolve', resolution: 'recovered' } : { do: 'nothing' };
}

/** Bad from `badFrom` on, good below `goodBelow`, and neither in between, so that a value on the edge does not flap. */
export function between(value: number, goodBelow: number, badFrom: number): Verdict {
  return value >= badFrom ? 'bad' : value < goodBelow ? 'good' : 'unknown';
}
