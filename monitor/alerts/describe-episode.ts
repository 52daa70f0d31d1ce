/** Episodes in words, the same in mails, in webhooks and on pages. */

import { endingText } from './credential-health.ts';
import type { AlertKind } from './episode.ts';
import type { Episode } from './store.ts';

export const kindNames: Record<AlertKind, string> = {
  sensor_silent: 'Sensor silent',
  capture_dead: 'Capture down',
  capture_loss: 'Capture loses packets',
  clock_skew: 'Sensor clock wrong',
  counters_left_out: 'Impossible counters left out',
  credential_copied: 'Sensor credential copied',
  credential_ending: 'Sensor credential ends',
  minutes_missing: 'Sensor sends no minutes',
  minutes_refused: 'Minutes refused',
  plan_cut: 'Too many protected addresses',
  probe_down: 'Probe down',
  storage_pressure: 'Sensor short of storage',
};

/** `Sensor silent: node-1`. */
export function titleOf(episode: Pick<Episode, 'kind' | 'subjectName'>): string {
  return `${kindNames[episode.kind]}: ${episode.subjectName}`;
}

/** What was measured, in one sentence without its full stop. */
export function measuredOf({ kind, details }: Pick<Episode, 'kind' | 'details'>): string {
  const percent = (value: unknown) => `${(Number(value) * 100).toFixed(1)} %`;
  switch (kind) {
    case 'sensor_silent':
      return `nothing was heard for ${Math.floor(Number(details.silent_seconds) / 60)} min`;
    case 'capture_dead':
      return 'the sensor runs, and this capture does not listen';
    case 'clock_skew':
      return skewText(Number(details.skew_seconds));
    case 'counters_left_out':
      return `counters that no link carries were left out, ${details.minute_rows} of minutes and ${details.live_rows} of live windows since the sensor was enrolled; the rest was kept`;
    case 'credential_copied':
      return 'a credential that was replaced is still in use: two hosts have a copy of it, or one was restored from an old disk';
    case 'credential_ending':
      return `${endingText(Number(details.left_seconds))}, and the sensor has not renewed it`;
    case 'minutes_missing':
      return `the sensor is in contact, and no minute arrived for ${Math.floor(Number(details.missing_seconds) / 60)} min`;
    case 'minutes_refused':
      return `an upload was not taken: ${details.why}`;
    case 'capture_loss':
      return (
        `${percent(details.lost_share)} of the packets of ${details.minutes} min were lost: ` +
        `${details.kernel_dropped} in the kernel, ${details.parser_dropped} in the parser`
      );
    case 'plan_cut':
      return `${details.targets} addresses are to be protected on this node, ${details.left_out} of them found no place in the plan`;
    case 'probe_down':
      return `no sensor gets an answer${details.reason ? `, the last attempt: ${failureNames[String(details.reason)] ?? details.reason}` : ''}`;
    case 'storage_pressure':
      return (
        `the spool is ${percent(details.spool_share)} full, the disk ${percent(details.disk_share)}` +
        (details.collection_paused ? '; collection pauses' : '')
      );
  }
}

/** `its clock is 2 h ahead`. */
export function skewText(skewSeconds: number): string {
  const size = Math.abs(skewSeconds);
  const units: [number, string][] = [
    [31_536_000, 'years'],
    [86_400, 'days'],
    [3600, 'h'],
    [60, 'min'],
  ];
  const [seconds, unit] = units.find(([unitSeconds]) => size >= 2 * unitSeconds) ?? [1, 's'];
  return `its clock is ${Math.floor(size / seconds)} ${unit} ${skewSeconds < 0 ? 'behind' : 'ahead'}`;
}

/** Why attempts of probes were lost, in words. */
export const failureNames: Readonly<Record<string, string>> = {
  timeout: 'no answer in time',
  refused: 'refused',
  unreachable: 'unreachable',
  name_not_found: 'the name does not resolve',
  bad_answer: 'a bad answer',
  tls: 'the certificate or TLS was not accepted',
  not_permitted: 'the host does not let the sensor try',
};
