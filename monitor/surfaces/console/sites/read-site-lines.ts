/** What the overview shows of each site, read from the features. */
import type { Episode } from '#monitor/alerts/index.ts';
import type { Collection } from '#monitor/facts/index.ts';
import { silentAfterSeconds } from '#monitor/sensors/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { SiteTraffic } from '#monitor/traffic/index.ts';
import type { ConsoleDeps } from '../deps.ts';

export interface SiteLine {
  site: Site;
  sensors: number;
  silent: number;
  /** Enrolled moments ago and not heard yet. */
  waiting: number;
  newestMinuteMs: number | undefined;
  /** The last 24 hours in steps of ten minutes, and the newest minute. */
  day: SiteTraffic;
  inBps: number | null;
  outBps: number | null;
  lastHour: Collection;
  gaps: number;
  /** Open alerts. */
  alerts: number;
}

/** A newest minute that is older says nothing about the present. */
export const recentMs = 15 * 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;
export const stepSeconds = 600;
/** Gaps of a site are counted up to this number. */
export const gapsMax = 100;
/** Open alerts are counted up to this number. */
export const alertsMax = 1_000;

export interface SitesOverview {
  lines: SiteLine[];
  /** Of all sites, as all below. */
  sensors: number;
  silent: number;
  /** Enrolled moments ago and not heard yet. */
  waiting: number;
  newestMinuteMs: number | undefined;
  /** Open alerts. */
  open: Episode[];
}

/** Lines of the sites given, and what is known of all. */
export async function readSiteLines(
  deps: ConsoleDeps,
  sites: readonly Site[],
  nowMs: number,
): Promise<SitesOverview> {
  const [newest, summaries, open] = await Promise.all([
    deps.traffic.newestMinutes(),
    deps.sensors.summarize(nowMs - silentAfterSeconds * 1000),
    deps.alerts.listOpen(null, alertsMax),
  ]);
  const alerts = Map.groupBy(open, (episode) => episode.siteId);
  const bySite = new Map(summaries.map((summary) => [summary.siteId, summary]));
  const lines = await Promise.all(
    sites.map((site) => {
      const { sensors = 0, silent = 0, waiting = 0 } = bySite.get(site.id) ?? {};
      const known = { site, sensors, silent, waiting, alerts: alerts.get(site.id)?.length ?? 0 };
      return readLine(deps, { ...known, newestMinuteMs: newest.get(site.id) }, nowMs);
    }),
  );
  return {
    lines,
    open,
    sensors: summaries.reduce((sum, one) => sum + one.sensors, 0),
    silent: summaries.reduce((sum, one) => sum + one.silent, 0),
    waiting: summaries.reduce((sum, one) => sum + one.waiting, 0),
    newestMinuteMs: newest.size > 0 ? Math.max(...newest.values()) : undefined,
  };
}

async function readLine(
  deps: ConsoleDeps,
  known: Pick<SiteLine, 'site' | 'sensors' | 'silent' | 'waiting' | 'alerts' | 'newestMinuteMs'>,
  nowMs: number,
): Promise<SiteLine> {
  const { site, newestMinuteMs } = known;
  const toMs = Math.ceil(nowMs / (stepSeconds * 1000)) * stepSeconds * 1000;
  const isRecent = newestMinuteMs !== undefined && newestMinuteMs >= nowMs - recentMs;
  const [gaps, day, newest, lastHour] = await Promise.all([
    deps.traffic.listGaps(site.id, nowMs - dayMs, nowMs, gapsMax),
    deps.traffic.readSiteTraffic(site.id, toMs - dayMs, toMs, stepSeconds),
    isRecent ? deps.traffic.readSiteTraffic(site.id, newestMinuteMs, newestMinuteMs + 60_000, 60) : null,
    deps.traffic.readCollection(site.id, nowMs - hourMs, nowMs),
  ]);
  return {
    ...known,
    day,
    inBps: newest?.inBps[0] ?? null,
    outBps: newest?.outBps[0] ?? null,
    lastHour,
    gaps: gaps.length,
  };
}
