/** What stands around the charts of a site, an address or a device: reasons of gaps, and flags of what happened. */

import { keptMs } from '#contracts/retention.ts';
import type { MonitorEvent } from '#monitor/events/index.ts';
import { titleOfIncident } from '#monitor/incidents/index.ts';
import type { GapRow, Traffic } from '#monitor/traffic/index.ts';
import type { ServerChange, ToldChange } from '#monitor/views/server-history-store.ts';
import type { ChartData, ChartReason, Range } from '#service-kit/pages/index.ts';
import { type ChartFlag, withQuery } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { incidentHref } from './incident-text.ts';
import { eventName, gapReason } from './words.ts';

/** Gaps that one ribbon is made of. */
const gapsMax = 500;

export type ChartAround = Pick<ChartData, 'reasons' | 'flags'>;

export async function readAround(
  deps: ConsoleDeps,
  subject: FlagSubject,
  range: ReasonInput['range'],
  nowMs: number,
  pace?: Pace,
): Promise<ChartAround> {
  const { siteId, addresses } = subject;
  const [reasons, flags] = await Promise.all([
    readSiteReasons(deps, siteId, { range, nowMs, ...(pace && { pace }) }, (gaps) =>
      addresses === undefined ? gaps : gapsOfAddresses(deps, siteId, addresses, gaps),
    ),
    readChartFlags(deps, subject, range),
  ]);
  return { reasons, flags };
}

/** Why nothing was observed of a site; `counted` leaves the gaps that are a reason. */
export async function readSiteReasons(
  deps: ConsoleDeps,
  siteId: number,
  asked: Pick<ReasonInput, 'range' | 'nowMs' | 'pace'>,
  counted: (gaps: readonly GapRow[]) => Promise<readonly GapRow[]> | readonly GapRow[] = (gaps) => gaps,
): Promise<ChartReason[]> {
  const { range } = asked;
  const [site, gaps, sensors] = await Promise.all([
    deps.sites.find(siteId),
    deps.traffic.listGaps(siteId, range.fromMs, range.toMs, gapsMax),
    deps.sensors.list(siteId),
  ]);
  const enrolledMs = sensors.length === 0 ? null : Math.min(...sensors.map((sensor) => sensor.enrolledAtMs));
  // The history of a simulated site is older than its sensors.
  const firstSensorMs = site?.isSimulated ? range.fromMs : enrolledMs;
  return chartReasons({ ...asked, gaps: await counted(gaps), firstSensorMs });
}

// Which gaps of a site are a reason for charts of some addresses: those of sensors that may have observed them.

/** Minutes before and after a gap at which it is asked who observed the addresses. */
const besideMinutes = [1, 2, 5, 15, 60];
/** Minutes of addresses that are asked for; with more, the gaps of all sensors are told. */
const askedMax = 5000;

/**
 * Leaves out gaps around which other sensors observed the addresses and this one did not. Where none did, as of quiet addresses,
 * it is not known whose gaps they were.
 */
export async function gapsOfAddresses(
  { traffic }: { traffic: Pick<Traffic, 'listSpeakers' | 'listCaptures'> },
  siteId: number,
  addresses: readonly string[],
  gaps: readonly GapRow[],
): Promise<readonly GapRow[]> {
  const minutes = [...new Set(gaps.flatMap(minutesBeside))];
  if (minutes.length === 0 || minutes.length * addresses.length > askedMax) return gaps;
  const asked = minutes.flatMap((minute) => addresses.map((address) => ({ address, minute })));
  const [speakers, captures] = await Promise.all([
    traffic.listSpeakers(siteId, asked),
    traffic.listCaptures(siteId),
  ]);
  const sensorOf = new Map(captures.map(({ captureId, sensorId }) => [captureId, sensorId]));
  const byMinute = Map.groupBy(speakers, ({ minute }) => minute);
  return gaps.filter((gap) => {
    const beside = minutesBeside(gap).flatMap((minute) => byMinute.get(minute) ?? []);
    const sensors = new Set(beside.map(({ captureId }) => sensorOf.get(captureId)));
    // Captures of a removed sensor are not listed.
    return sensors.size === 0 || sensors.has(gap.sensorId) || sensors.has(undefined);
  });
}

const minutesBeside = ({ fromMinute, toMinute }: GapRow): number[] =>
  besideMinutes.flatMap((count) => [fromMinute - count * 60, toMinute + count * 60]);

// What happened at a site, as flags on the time axis of its charts: attacks, drills, scans, changed thresholds, servers that came, moved
// to another node, were switched on or off, restarted, or went, changed firewalls and networks of servers, and other events.

/** Of each kind, in one chart. */
const eachMax = 50;

/** An address whose own history is told; without one that of the site. */
interface FlagSubject {
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

// Why charts of this console have no values, or only a part of them: gaps of captures, and minutes that are still to come.

/** What a chart is made of, and how long after its end it may still arrive. */
interface Pace {
  unitMs: number;
  arrivesWithinMs: number;
  /** What is said of such a time. */
  text: string;
}

const byMinutes: Pace = { unitMs: 60_000, arrivesWithinMs: 90_000, text: 'minute in progress' };
export const byLiveWindows: Pace = { unitMs: 10_000, arrivesWithinMs: 20_000, text: 'window on its way' };

/** How long facts of traffic are kept (NET-2.4.1). */
const trafficKeptMs = keptMs('traffic');
/** Stretches in one ribbon; more would be narrower than a pixel. */
const reasonsMax = 200;

interface ReasonInput {
  gaps: readonly GapRow[];
  range: Pick<Range, 'fromMs' | 'toMs'>;
  pace?: Pace;
  /** When the first sensor of the site was enrolled; null: none is. */
  firstSensorMs: number | null;
  nowMs: number;
}

/** In the order in which they are told where several hold. Gaps of one reason and host that touch are one. */
export function chartReasons({
  gaps,
  range,
  pace = byMinutes,
  firstSensorMs,
  nowMs,
}: ReasonInput): ChartReason[] {
  const { fromMs, toMs } = range;
  const { unitMs, arrivesWithinMs } = pace;
  const edge = (text: string, from: number, to: number): ChartReason[] => {
    const reason = {
      fromMs: Math.max(from, fromMs),
      toMs: Math.min(to, toMs),
      text,
      tone: 'neutral',
    } as const;
    return reason.fromMs < reason.toMs ? [reason] : [];
  };
  return [
    ...edge('kept no longer', fromMs, nowMs - trafficKeptMs),
    ...(firstSensorMs === null
      ? edge('no sensor is enrolled', fromMs, nowMs)
      : edge('before the first sensor was enrolled', fromMs, Math.floor(firstSensorMs / 60_000) * 60_000)),
    ...mergedGaps(gaps, range, firstSensorMs).slice(-reasonsMax),
    ...edge(pace.text, Math.floor((nowMs - arrivesWithinMs) / unitMs) * unitMs, nowMs),
    ...edge('not yet', nowMs, toMs),
  ];
}

/** In order of time. */
function mergedGaps(
  gaps: readonly GapRow[],
  range: ReasonInput['range'],
  firstSensorMs: number | null,
): ChartReason[] {
  const open = new Map<string, ChartReason>();
  const all: ChartReason[] = [];
  const inOrder = gaps.toSorted((a, b) => a.fromMinute - b.fromMinute);
  for (const gap of inOrder) {
    const fromMs = Math.max(gap.fromMinute * 1000, range.fromMs);
    const toMs = Math.min((gap.toMinute + 60) * 1000, range.toMs);
    if (fromMs >= toMs) continue;
    // The minute in which the first sensor was enrolled is no fault.
    const isFirst = gap.reason === 'sensor_down' && gap.toMinute * 1000 <= (firstSensorMs ?? 0);
    // Of a sensor that did not run each capture has its gap.
    const isOfCapture = gap.capture !== '' && gap.reason !== 'sensor_down';
    const where = isOfCapture ? `${gap.hostName}, ${gap.capture}` : gap.hostName;
    const text = `${isFirst ? 'the sensor was just enrolled' : gapReason(gap)} (${where})`;
    const last = open.get(text);
    if (last && fromMs <= last.toMs) {
      last.toMs = Math.max(last.toMs, toMs);
      continue;
    }
    const reason: ChartReason = { fromMs, toMs, text, ...(isFirst && { tone: 'neutral' }) };
    open.set(text, reason);
    all.push(reason);
  }
  return all;
}
