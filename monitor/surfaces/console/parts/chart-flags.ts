/** What happened at a site, as flags on the time axis of its charts: attacks, scans, changed thresholds, events. */
import type { MonitorEvent } from '#monitor/events/index.ts';
import { titleOfIncident } from '#monitor/incidents/index.ts';
import { type ChartFlag, type Range, withQuery } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { incidentHref } from './incident-text.ts';
import { eventName } from './words.ts';

/** Of each kind, in one chart. */
const eachMax = 50;

/** An address whose own history is told; without one that of the site. */
export interface FlagSubject {
  siteId: number;
  addresses?: readonly string[] | undefined;
}

export async function readChartFlags(
  deps: Pick<ConsoleDeps, 'incidents' | 'scans' | 'events' | 'auditTrail'>,
  subject: FlagSubject,
  range: Pick<Range, 'fromMs' | 'toMs'>,
): Promise<ChartFlag[]> {
  const flags = await Promise.all([
    attackFlags(deps, subject),
    scanFlags(deps, subject),
    eventFlags(deps, subject, range),
    thresholdFlags(deps, subject, range),
  ]);
  return flags
    .flat()
    .filter(({ timeMs }) => timeMs >= range.fromMs && timeMs < range.toMs)
    .sort((a, b) => a.timeMs - b.timeMs);
}

async function attackFlags(deps: Pick<ConsoleDeps, 'incidents'>, { siteId, addresses }: FlagSubject) {
  const filters = addresses?.map((address) => ({ siteId, address })) ?? [{ siteId }];
  const found = await Promise.all(filters.map((filter) => deps.incidents.list(filter, eachMax)));
  return found.flat().map(
    (incident): ChartFlag => ({
      timeMs: incident.startedAtMs,
      text: titleOfIncident(incident),
      href: incidentHref(incident),
      tone: incident.severity === 'attack' ? 'bad' : 'info',
    }),
  );
}

async function scanFlags(deps: Pick<ConsoleDeps, 'scans'>, { siteId, addresses }: FlagSubject) {
  const scans = await deps.scans.listAttempts(siteId, eachMax);
  return scans
    .filter(({ address }) => addresses === undefined || addresses.includes(address))
    .map(
      (scan): ChartFlag => ({
        timeMs: scan.startedAtMs ?? scan.reportedAtMs,
        text: `Port scan of ${scan.address}`,
        href: `/sites/${siteId}/port-scans`,
        tone: 'info',
      }),
    );
}

/** Attacks have flags of their own. */
async function eventFlags(
  deps: Pick<ConsoleDeps, 'events'>,
  { siteId, addresses }: FlagSubject,
  range: Pick<Range, 'fromMs' | 'toMs'>,
) {
  const events = await deps.events.list(siteId, eachMax, { fromMs: range.fromMs, toMs: range.toMs });
  return events
    .filter(({ kind }) => kind !== 'ddos_detected')
    .filter(({ details }) => addresses === undefined || addresses.includes(String(details.address)))
    .map(
      (event): ChartFlag => ({
        timeMs: event.occurredAtMs,
        text: eventText(event),
        href: withQuery(`/sites/${siteId}/events`, { kind: event.kind }),
        tone: 'warn',
      }),
    );
}

function eventText({ kind, details, hostName }: MonitorEvent): string {
  const about = typeof details.address === 'string' ? details.address : hostName;
  const name = eventName(kind);
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}${about ? `: ${about}` : ''}`;
}

/** Out of the audit trail, which has who changed them. */
async function thresholdFlags(
  deps: Pick<ConsoleDeps, 'auditTrail'>,
  { siteId, addresses }: FlagSubject,
  range: Pick<Range, 'fromMs' | 'toMs'>,
) {
  const filter = { operation: 'protection.set_thresholds', fromMs: range.fromMs, toMs: range.toMs };
  const { entries } = await deps.auditTrail.page(filter, {});
  return entries
    .filter(({ before, after }) => siteOf(after) === siteId || siteOf(before) === siteId)
    .filter(
      ({ subjectKind, subjectId }) =>
        addresses === undefined || (subjectKind === 'address' && addresses.includes(String(subjectId))),
    )
    .map((entry): ChartFlag => {
      const subject = entry.subjectKind === 'site' ? 'the site' : `${entry.subjectKind} ${entry.subjectId}`;
      return {
        timeMs: entry.occurredAtMs,
        text: `Thresholds of ${subject} changed`,
        href: withQuery('/audit', { operation: entry.operation }),
      };
    });
}

function siteOf(state: unknown): unknown {
  return typeof state === 'object' && state !== null ? (state as { siteId?: unknown }).siteId : undefined;
}
