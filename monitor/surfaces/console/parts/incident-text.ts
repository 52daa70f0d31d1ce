/** An incident in words and links, the same on every page. */

import type { FastifyRequest } from 'fastify';
import type { Incident } from '#monitor/incidents/index.ts';
import {
  comparedRate,
  isBitMetric,
  nameOfClass,
  type OpenCounts,
  titleOfIncident,
} from '#monitor/incidents/index.ts';
import {
  badge,
  banner,
  type Content,
  formatAge,
  formatBitRate,
  formatCount,
  formatTime,
  type Html,
  html,
  isoTime,
  link,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  countColumn,
  type DataColumn,
  dataTable,
  figureColumn,
  momentColumn,
} from '#service-kit/web/index.ts';
import { addressHref } from './address-link.ts';

export const incidentHref = ({ siteId, id }: Pick<Incident, 'siteId' | 'id'>): string =>
  `/sites/${siteId}/incidents/${id}`;

export function incidentTone({ state, severity }: Pick<Incident, 'state' | 'severity'>): Tone {
  if (state === 'recovered') return 'good';
  if (severity === 'info') return 'info';
  return state === 'active' ? 'bad' : 'warn';
}

const stateNames = { active: 'active', stale: 'stale: no recent data', recovered: 'recovered' } as const;

export function stateBadge(incident: Incident): Content {
  const name =
    incident.state === 'active' && incident.severity === 'info' ? 'active, info' : stateNames[incident.state];
  return [badge(incidentTone(incident), name), incident.isDrill && html` ${badge('info', 'drill')}`];
}

/** `10:02:11`, with the day where it is another one than now. */
export function clockText(ms: number, nowMs: number): string {
  const text = formatTime(ms, 'seconds');
  const isToday = formatTime(ms, 'day') === formatTime(nowMs, 'day');
  return isToday ? `${text.slice(11, 19)} UTC` : text;
}

const packetText = (pps: number) => `${formatCount(Math.round(pps))} packets/s`;

/** `2.5 times the threshold`, or nothing where the threshold is not known. */
function ratioText(incident: Incident): string {
  const { threshold, current, peak } = incident.measured;
  if (threshold === null || threshold.value <= 0) return '';
  const ratio = comparedRate(threshold.metric, current ?? peak) / threshold.value;
  return `, ${ratio >= 10 ? formatCount(Math.round(ratio)) : ratio.toFixed(1)} times the threshold`;
}

/** The state in one sentence: what, on which target, since when, how strong. */
export function incidentSentence(incident: Incident, nowMs: number): string {
  const { measured, threshold } = { ...incident, threshold: incident.measured.threshold };
  const rateOf = (rate: { bps: number; pps: number }) =>
    threshold !== null && isBitMetric(threshold.metric) ? formatBitRate(rate.bps) : packetText(rate.pps);
  const since = `${titleOfIncident(incident)} since ${clockText(incident.startedAtMs, nowMs)}`;
  if (incident.isWithdrawn)
    return `${titleOfIncident(incident)} was withdrawn: only sensors of other nodes had reported it.`;
  const isOver = measured.current?.pps === 0;
  if (incident.state === 'active' && !isOver)
    return `${since}, ${rateOf(measured.current ?? measured.peak)}${ratioText(incident)}.`;
  const peak = `peak ${rateOf(measured.peak)}${ratioText({ ...incident, measured: { ...measured, current: null } })}`;
  // Its sensors wait for sixty healthy seconds.
  if (incident.state === 'active')
    return `${since}, ${peak}. Nothing of it now: recovered after a minute without it.`;
  if (incident.state === 'stale')
    return `${since}, ${peak}. No data from its sensors since ${clockText(incident.lastObservedAtMs, nowMs)}.`;
  return `${titleOfIncident(incident)} from ${clockText(incident.startedAtMs, nowMs)} to ${clockText(incident.recoveredAtMs!, nowMs)}, ${peak}. Recovered.`;
}

/** The target, with a link to the page of the address, or of the sensor whose capture it is. */
export function targetLink(incident: Incident): Content {
  const { siteId, target, targetKey } = incident;
  if (target.kind === 'prefix') return target.value;
  if (target.kind === 'capture')
    return link(`/sites/${siteId}/sensors/${sensorOfCapture(incident)}`, `capture ${target.value}`);
  const segment = targetKey.split(' ').slice(2).join(' ');
  return link(addressHref(siteId, { address: target.value, segment }), target.value);
}

/** The sensor whose capture is the target, by its id. */
export const sensorOfCapture = ({ targetKey }: Pick<Incident, 'targetKey'>): number =>
  Number(targetKey.split(' ')[1]);

const directionText = ({ direction }: Pick<Incident, 'direction'>): string =>
  direction === 'inbound' ? 'in' : 'out';

export const classText = (incident: Incident): string => nameOfClass(incident.class, incident.severity);

/** What attacks are active at a site; nothing without any. */
export function attackBanner(counts: OpenCounts | undefined): Html | false {
  if (!counts || counts.attacks + counts.stale === 0) return false;
  const { attacks, stale, siteId } = counts;
  const title =
    attacks === 0
      ? 'Attacks without news'
      : attacks === 1
        ? 'Under attack'
        : `Under attack: ${formatCount(attacks)} incidents`;
  const text =
    stale > 0 ? `${formatCount(stale)} of them ended without a recovery: their sensors are silent. ` : '';
  return banner({
    tone: attacks > 0 ? 'bad' : 'warn',
    title,
    text: html`${attacks > 0 && stale > 0 ? text.replace('of them', 'more') : text}${link(`/sites/${siteId}/incidents?severity=attack`, 'Show incidents')}`,
  });
}

// Tables of incidents.

/** `siteName`: null in a table of one site. */
export function incidentColumns(
  nowMs: number,
  siteName: ((row: Incident) => string) | null,
): DataColumn<Incident>[] {
  return [
    {
      key: 'class',
      header: 'Incident',
      cell: (row) => link(incidentHref(row), classText(row)),
      value: (row) => row.class,
    },
    { key: 'state', header: 'State', cell: stateBadge, value: (row) => row.state },
    { key: 'target', header: 'Target', kind: 'code', cell: targetLink, value: (row) => row.target.value },
    ...(siteName
      ? [{ key: 'site', header: 'Site', cell: siteName, value: siteName } satisfies DataColumn<Incident>]
      : []),
    { key: 'direction', header: 'Direction', cell: directionText, value: (row) => row.direction },
    momentColumn('started', 'Started', (row) => row.startedAtMs, nowMs, { field: 'started_at' }),
    countColumn('packets', 'Peak', (row) => row.measured.peak.pps, { unit: 'packets/s', field: 'peak_pps' }),
    figureColumn('bits', 'Peak rate', (row) => row.measured.peak.bps, formatBitRate, { field: 'peak_bps' }),
    {
      key: 'observed',
      header: 'Last observed',
      kind: 'figure',
      cell: (row) => formatAge(row.lastObservedAtMs, nowMs),
      field: 'last_observed_at',
      value: (row) => isoTime(row.lastObservedAtMs),
    },
  ];
}

/** A short list on the page of something else. */
export function incidentTable(request: FastifyRequest, rows: readonly Incident[], nowMs: number): Content {
  return dataTable<Incident>(request, {
    id: 'incidents',
    caption: 'Incidents',
    card: { line: ['state', 'target', 'started'] },
    rows,
    isStacked: true,
    columns: incidentColumns(nowMs, null),
    fields: [{ field: 'id', value: (row) => row.id }],
    empty: { title: 'No incidents', text: 'Attacks appear here as sensors detect them.' },
  });
}
