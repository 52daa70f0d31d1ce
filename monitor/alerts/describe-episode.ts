/** Texts about episodes, the same in mails, in webhooks and on pages. */

import { nameSites } from '#monitor/views/sensor-store.ts';
import { formatBitRate, formatCount, formatDuration } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { measuredOfSystem } from '#service-kit/system/index.ts';
import { endingText } from './credential-health.ts';
import { alertKinds } from './episode.ts';
import { type EpisodeFilter, findEpisode, listEpisodes, type StoredEpisode } from './store.ts';

/** `Sensor silent: node-1`. */
export function titleOf(episode: Pick<Episode, 'kind' | 'subjectName'>): string {
  return `${alertKinds[episode.kind].label}: ${episode.subjectName}`;
}

/** The measured values in one sentence without its full stop. */
export function measuredOf({ kind, details }: Pick<Episode, 'kind' | 'details'>): string {
  const percent = (value: unknown) => `${(Number(value) * 100).toFixed(1)} %`;
  switch (kind) {
    case 'attack_detected':
      return (
        `${details.title}${details.drill ? ' (an operator’s drill)' : ''}: ` +
        `up to ${formatCount(Number(details.peak_pps))} packets/s, ${formatBitRate(Number(details.peak_bps))}`
      );
    case 'sensor_silent':
      return `no contact for ${Math.floor(Number(details.silent_seconds) / 60)} min`;
    case 'capture_dead':
      return 'the sensor has contact, but this capture does not listen';
    case 'clock_skew':
      return skewText(Number(details.skew_seconds));
    case 'counters_left_out':
      return `impossible counters were ignored, ${details.minute_rows} in minutes and ${details.live_rows} in live windows since the sensor was enrolled; all other counters were kept`;
    case 'credential_copied':
      return 'a replaced credential is still in use: two hosts have a copy of it, or a host was restored from an old disk';
    case 'credential_ending':
      return `${endingText(Number(details.left_seconds))}, and the sensor has not renewed it`;
    case 'disk_filling':
    case 'loop_failing':
      return measuredOfSystem(kind, details);
    case 'findings_new':
      return findingsText(details);
    case 'hand_off_failing':
      return `${details.failing === 1 ? 'an action fails' : `${details.failing} actions fail`}: ${details.error}`;
    case 'minutes_missing':
      return `the sensor has contact, but no minute arrived for ${Math.floor(Number(details.missing_seconds) / 60)} min`;
    case 'minutes_refused':
      return `an upload was refused: ${details.why}`;
    case 'capture_loss':
      return (
        `${percent(details.lost_share)} of the packets of ${details.minutes} min were lost: ` +
        `${details.kernel_dropped} in the kernel, ${details.parser_dropped} in the parser`
      );
    case 'plan_cut':
      return `${details.left_out} of ${details.targets} entries have no room in the plan: ${details.lists ?? 'protected addresses'}`;
    case 'probe_down':
      return `no sensor gets an answer${details.reason ? `, the last attempt: ${failureNames[String(details.reason)] ?? details.reason}` : ''}`;
    case 'scans_overdue':
      return Number(details.overdue) > 0
        ? `${details.overdue} of ${details.targets} addresses were not scanned for two hours`
        : `the sensor has contact, but has not fetched its scan plan for ${Math.floor(Number(details.fetched_seconds) / 60)} min`;
    case 'storage_pressure':
      return (
        `the spool is ${percent(details.spool_share)} full, the disk ${percent(details.disk_share)}` +
        (details.collection_paused ? '; collection pauses' : '')
      );
    case 'uploads_waiting':
      return `${details.pending} uploads of sensors wait to be applied, the oldest for ${formatDuration(Number(details.oldest_seconds))}`;
    case 'vulnerability_copy_old':
      return (
        `the copy was not refreshed for ${Math.floor(Number(details.overdue_seconds) / 86_400)} days` +
        `${details.reason ? `, the last attempt: ${String(details.reason).replace(/\.$/, '')}` : ''}; its last records are still used`
      );
  }
}

/** `2 new of severity high or critical: CVE-2024-6387 at tcp/22 (OpenSSH 9.6p1), and 1 more`. */
function findingsText({ found, first, others, severity }: Episode['details']): string {
  const more = Number(found) - 1;
  const elsewhere = Number(others);
  return (
    `${found} new of severity ${severity}, not confirmed: ${first}${more > 0 ? `, and ${more} more` : ''}` +
    `${elsewhere > 0 ? `; ${elsewhere} other ${elsewhere === 1 ? 'server has' : 'servers have'} new ones too, see the list of alerts` : ''}`
  );
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

/** Reasons for lost attempts of probes. */
export const failureNames: Readonly<Record<string, string>> = {
  timeout: 'no answer in time',
  refused: 'refused',
  unreachable: 'unreachable',
  name_not_found: 'the name does not resolve',
  bad_answer: 'a bad answer',
  tls: 'the certificate or TLS was not accepted',
  not_permitted: 'the host does not permit the attempt',
};

// Episodes with the names of their sites.

export interface Episode extends StoredEpisode {
  siteName: string;
}

export async function readEpisode(db: Queryable, id: number): Promise<Episode | null> {
  const found = await findEpisode(db, id);
  return found && (await withSiteNames(db, [found]))[0]!;
}

/** Newest first. */
export async function readEpisodes(db: Queryable, filter: EpisodeFilter): Promise<Episode[]> {
  return withSiteNames(db, await listEpisodes(db, filter));
}

async function withSiteNames(db: Queryable, episodes: readonly StoredEpisode[]): Promise<Episode[]> {
  const ids = new Set(episodes.flatMap(({ siteId }) => siteId ?? []));
  const names = await nameSites(db, [...ids]);
  return episodes.map((episode) => ({
    ...episode,
    siteName: episode.siteId === null ? 'all sites' : names.get(episode.siteId)!,
  }));
}
