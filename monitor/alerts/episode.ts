/** Episodes, and the rules for opening and resolving them. */

export const alertKinds = [
  'attack_detected',
  'sensor_silent',
  'capture_dead',
  'capture_loss',
  'clock_skew',
  'counters_left_out',
  'credential_copied',
  'credential_ending',
  'disk_filling',
  'findings_new',
  'hand_off_failing',
  'loop_failing',
  'minutes_missing',
  'minutes_refused',
  'plan_cut',
  'probe_down',
  'scans_overdue',
  'storage_pressure',
  'uploads_waiting',
  'vulnerability_copy_old',
] as const;
export type AlertKind = (typeof alertKinds)[number];

/** Kinds that follow another feature's state (`note-incidents.ts`, `note-findings.ts`), not the judging loop. */
export const fedKinds: ReadonlySet<AlertKind> = new Set(['attack_detected', 'findings_new']);

/** Verdict of the newest facts about one subject. `unknown` includes values between bad and good. */
export type Verdict = 'bad' | 'good' | 'unknown';

/** Something that is judged, in its present state. A subject that is in no list was removed. */
export interface Subject {
  kind: AlertKind;
  /**
   * `sensor:4`, `capture:4:eth0`, `probe:7`, `server:7:12`, `incident:` and its UUID, `hand-off:3` of a rule; of the monitor itself
   * `vulnerability-copy`, `inbox`, `disk:HOST:PATH`, `loop:NAME`.
   */
  key: string;
  /** Null: it concerns all sites. */
  siteId: number | null;
  name: string;
  verdict: Verdict;
  /** Measured values, for people. */
  details: Record<string, string | number | boolean | null>;
}

export interface OpenEpisode {
  id: number;
  kind: AlertKind;
  subjectKey: string;
  /** Start of the present run of good verdicts. */
  goodSinceMs: number | null;
}

/** How long a subject must be good without a break before its episode is resolved. */
export const resolveSeconds: Record<AlertKind, number> = {
  // Resolved by its incident, at once.
  attack_detected: 0,
  sensor_silent: 60,
  capture_dead: 60,
  capture_loss: 120,
  clock_skew: 60,
  counters_left_out: 60,
  credential_copied: 60,
  credential_ending: 60,
  disk_filling: 120,
  // Resolved by the check that finds none, at once.
  findings_new: 0,
  hand_off_failing: 60,
  loop_failing: 60,
  minutes_missing: 60,
  minutes_refused: 60,
  plan_cut: 60,
  probe_down: 60,
  scans_overdue: 60,
  storage_pressure: 120,
  uploads_waiting: 60,
  vulnerability_copy_old: 60,
};

export type Step =
  | { do: 'nothing' }
  | { do: 'open' }
  /** The first good verdict. */
  | { do: 'recover' }
  /** The verdict is no longer good, or unknown. */
  | { do: 'relapse' }
  | { do: 'resolve'; resolution: 'recovered' | 'removed' };

/**
 * The next step of a subject's episode. Only a continuously observed recovery resolves an episode: an unknown verdict
 * restarts it, so that missing data never counts as recovery.
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

/** Bad from `badFrom` on, good below `goodBelow`, otherwise unknown, so that a value at the limit does not flap. */
export function between(value: number, goodBelow: number, badFrom: number): Verdict {
  return value >= badFrom ? 'bad' : value < goodBelow ? 'good' : 'unknown';
}
