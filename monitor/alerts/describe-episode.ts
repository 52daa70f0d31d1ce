/** Episodes in words, the same in mails, in webhooks and on pages. */

import type { AlertKind } from './episode.ts';
import type { Episode } from './store.ts';

export const kindNames: Record<AlertKind, string> = {
  sensor_silent: 'Sensor silent',
  capture_loss: 'Capture loses packets',
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
    case 'capture_loss':
      return (
        `${percent(details.lost_share)} of the packets of ${details.minutes} min were lost: ` +
        `${details.kernel_dropped} in the kernel, ${details.parser_dropped} in the parser`
      );
    case 'probe_down':
      return `no sensor gets an answer${details.reason ? `, the last attempt: ${failureNames[String(details.reason)] ?? details.reason}` : ''}`;
    case 'storage_pressure':
      return (
        `the spool is ${percent(details.spool_share)} full, the disk ${percent(details.disk_share)}` +
        (details.collection_paused ? '; collection pauses' : '')
      );
  }
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
