/** Episodes, and the rules for opening and resolving them. */
import { systemKindNames } from '#service-kit/system/index.ts';

/** An alert that is critical is sent in quiet hours too. */
export type AlertSeverity = 'critical' | 'warning';

interface AlertKindFacts {
  /** In titles. */
  label: string;
  severity: AlertSeverity;
  /** How long a subject must be good without a break before its episode is resolved; 0: what feeds it resolves it at once. */
  resolveSeconds: number;
}

const kinds = {
  attack_detected: { label: 'Attack', severity: 'critical', resolveSeconds: 0 },
  sensor_silent: { label: 'Sensor silent', severity: 'critical', resolveSeconds: 60 },
  capture_dead: { label: 'Capture down', severity: 'critical', resolveSeconds: 60 },
  capture_loss: { label: 'Capture loses packets', severity: 'warning', resolveSeconds: 120 },
  clock_skew: { label: 'Sensor clock wrong', severity: 'warning', resolveSeconds: 60 },
  counters_left_out: { label: 'Impossible counters ignored', severity: 'warning', resolveSeconds: 60 },
  credential_copied: { label: 'Sensor credential copied', severity: 'critical', resolveSeconds: 60 },
  credential_ending: { label: 'Sensor credential expires', severity: 'warning', resolveSeconds: 60 },
  disk_filling: { label: systemKindNames.disk_filling, severity: 'critical', resolveSeconds: 120 },
  findings_new: { label: 'Potential vulnerabilities', severity: 'warning', resolveSeconds: 0 },
  hand_off_failing: { label: 'Hand-off failing', severity: 'critical', resolveSeconds: 60 },
  loop_failing: { label: systemKindNames.loop_failing, severity: 'critical', resolveSeconds: 60 },
  minutes_missing: { label: 'Sensor sends no minutes', severity: 'warning', resolveSeconds: 60 },
  minutes_refused: { label: 'Minutes refused', severity: 'warning', resolveSeconds: 60 },
  plan_cut: { label: 'Plan of a sensor too long', severity: 'warning', resolveSeconds: 60 },
  probe_down: { label: 'Probe down', severity: 'warning', resolveSeconds: 60 },
  scans_overdue: { label: 'Port scans overdue', severity: 'warning', resolveSeconds: 60 },
  storage_pressure: { label: 'Sensor storage low', severity: 'critical', resolveSeconds: 120 },
  uploads_waiting: { label: 'Uploads not applied', severity: 'warning', resolveSeconds: 60 },
  vulnerability_copy_old: {
    label: 'Vulnerability database not refreshed',
    severity: 'warning',
    resolveSeconds: 60,
  },
} satisfies Record<string, AlertKindFacts>;
export type AlertKind = keyof typeof kinds;
export const alertKinds: Readonly<Record<AlertKind, AlertKindFacts>> = kinds;
/** Their names, for queries. */
export const criticalKinds = Object.entries(kinds).flatMap(([kind, { severity }]) =>
  severity === 'critical' ? [kind] : [],
);

/** Kinds that follow another feature's state (`note-incidents.ts`, `note-findings.ts`), not the judging loop. */
export const fedKinds: ReadonlySet<AlertKind> = new Set(['attack_detected', 'findings_new']);

/** What the newest facts say of one subject. `unknown` includes values between bad and good. */
export type SubjectStatus = 'bad' | 'good' | 'unknown';

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
  verdict: SubjectStatus;
  /** Measured values, for people. */
  details: Record<string, string | number | boolean | null>;
}

export interface OpenEpisode {
  id: number;
  kind: AlertKind;
  subjectKey: string;
  /** Start of the present run of good verdicts; it resolves when they last. */
  goodSinceMs: number | null;
}

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
  verdict: SubjectStatus | 'gone',
  nowMs: number,
): Step {
  if (!open) return { do: verdict === 'bad' ? 'open' : 'nothing' };
  if (verdict === 'gone') return { do: 'resolve', resolution: 'removed' };
  if (verdict !== 'good') return { do: open.goodSinceMs === null ? 'nothing' : 'relapse' };
  if (open.goodSinceMs === null) return { do: 'recover' };
  const isOver = nowMs - open.goodSinceMs >= alertKinds[kind].resolveSeconds * 1000;
  return isOver ? { do: 'resolve', resolution: 'recovered' } : { do: 'nothing' };
}

/** Bad from `badFrom` on, good below `goodBelow`, otherwise unknown, so that a value at the limit does not flap. */
export function between(value: number, goodBelow: number, badFrom: number): SubjectStatus {
  return value >= badFrom ? 'bad' : value < goodBelow ? 'good' : 'unknown';
}
