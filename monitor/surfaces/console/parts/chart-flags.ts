/**
 * What happened at a site, as flags on the time axis of its charts: attacks, drills, scans, changed thresholds, servers that came, moved
 * to another node, were switched on or off, restarted, or went, changed firewalls and networks of servers, and other events.
 */
import type { MonitorEvent } from '#monitor/events/index.ts';
import { titleOfIncident } from '#monitor/incidents/index.ts';
import type { ServerChange, ToldChange } from '#monitor/views/index.ts';
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
  deps: Pick<ConsoleDeps, 'incidents' | 'scans' | 'events' | 'auditTrail' | 'inventory'>,
  subject: FlagSubject,
  range: Pick<Range, 'fromMs' | 'toMs'>,
): Promise<ChartFlag[]> {
  const flags = await Promise.all([
    attackFlags(deps, subject),
    scanFlags(deps, subject),
    eventFlags(deps, subject, range),
    thresholdFlags(deps, subject, range),
    drillFlags(deps, subject, range),
    serverFlags(deps, subject, range),
    toldFlags(deps, subject, range),
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
    .filter(
      ({ details }) => addresses === undefined || addressesIn(details).some((one) => addresses.includes(one)),
    )
    .map(
      (event): ChartFlag => ({
        timeMs: event.occurredAtMs,
        text: eventText(event),
        href: withQuery(`/sites/${siteId}/events`, { kind: event.kind }),
        tone: event.kind === 'server_state_changed' ? 'info' : 'warn',
      }),
    );
}

function addressesIn({ address, addresses }: MonitorEvent['details']): string[] {
  return [address, ...(Array.isArray(addresses) ? addresses : [])].map(String);
}

function eventText({ kind, details, hostName }: MonitorEvent): string {
  if (kind === 'server_state_changed') return `${details.server} is ${details.after}, was ${details.before}`;
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

/** Replays of attacks through the detectors; they explain an incident without traffic. */
async function drillFlags(
  deps: Pick<ConsoleDeps, 'auditTrail'>,
  { siteId, addresses }: FlagSubject,
  range: Pick<Range, 'fromMs' | 'toMs'>,
) {
  const filter = { operation: 'drill.start', fromMs: range.fromMs, toMs: range.toMs };
  const { entries } = await deps.auditTrail.page(filter, {});
  return entries
    .filter(({ after }) => siteOf(after) === siteId)
    .filter(({ subjectName }) => addresses === undefined || addresses.includes(String(subjectName)))
    .map(
      (entry): ChartFlag => ({
        timeMs: entry.occurredAtMs,
        text: `Drill for ${entry.subjectName}`,
        href: `/sites/${siteId}/protection`,
        tone: 'info',
      }),
    );
}

async function serverFlags(
  deps: Pick<ConsoleDeps, 'inventory'>,
  subject: FlagSubject,
  range: Pick<Range, 'fromMs' | 'toMs'>,
) {
  const changes = await deps.inventory.listServerChanges(changesAsked(subject, range), eachMax);
  return changes.map((change) => serverFlag(subject.siteId, change, changeText(change)));
}

/** What no list of servers shows, such as a changed firewall: operations says that and when, and nothing more. */
async function toldFlags(
  deps: Pick<ConsoleDeps, 'inventory'>,
  subject: FlagSubject,
  range: Pick<Range, 'fromMs' | 'toMs'>,
) {
  const changes = await deps.inventory.listToldChanges(changesAsked(subject, range), eachMax);
  return changes.map((change) => {
    const often = change.times === 1 ? '' : `, ${change.times} times`;
    return serverFlag(subject.siteId, change, `${change.serverName}: ${toldWords[change.kind]}${often}`);
  });
}

function changesAsked({ siteId, addresses }: FlagSubject, { fromMs, toMs }: Pick<Range, 'fromMs' | 'toMs'>) {
  return { siteId, fromMs, toMs, addresses: addresses ?? null };
}

const toldWords: Readonly<Record<ToldChange['kind'], string>> = {
  firewall: 'firewall changed',
  network_attached: 'attached to a private network',
  network_detached: 'detached from a private network',
  rebooted: 'rebooted',
  reset: 'reset',
};

function serverFlag(
  siteId: number,
  change: Pick<ServerChange, 'atMs' | 'address' | 'serverName'>,
  text: string,
): ChartFlag {
  return {
    timeMs: change.atMs,
    text,
    href:
      change.address === null
        ? withQuery('/search', { q: change.serverName })
        : `/sites/${siteId}/addresses/${encodeURIComponent(change.address)}`,
    tone: 'info',
  };
}

function changeText({ kind, serverName, fromNode, toNode }: ServerChange): string {
  const node = (name: string | null) => name ?? 'an unknown node';
  switch (kind) {
    case 'listed':
      return `${serverName} was deployed${toNode === null ? '' : ` on ${toNode}`}`;
    case 'gone':
      return `${serverName} was destroyed`;
    case 'moved':
      return `${serverName} moved from ${node(fromNode)} to ${node(toNode)}`;
  }
}

function siteOf(state: unknown): unknown {
  return typeof state === 'object' && state !== null ? (state as { siteId?: unknown }).siteId : undefined;
}
