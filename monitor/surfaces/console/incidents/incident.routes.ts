/** `/sites/{id}/incidents/{incident}`: the requests for one incident, and for the data of its chart. */

import type { FastifyRequest } from 'fastify';
import type { EvidenceFile } from '#monitor/evidence/index.ts';
import type { Action } from '#monitor/hand-off/index.ts';
import type { RemotePrefix, SensorView, StoredIncident } from '#monitor/incidents/index.ts';
import {
  type CurvePoint,
  type Incident,
  isBitMetric,
  type StoredTransition,
  type TransitionKind,
} from '#monitor/incidents/index.ts';
import { nameSensors } from '#monitor/views/sensor-store.ts';
import type { App } from '#service-kit/http/index.ts';
import type { ChartData, ChartFlag, ChartReason, ChartUnit, Tone } from '#service-kit/pages/index.ts';
import {
  banner,
  type Content,
  chart,
  chartJson,
  definitionList,
  formatBitRate,
  formatBytes,
  formatCount,
  formatDuration,
  formatTime,
  link,
  moment,
  pageHeader,
  refreshing,
  section,
  stat,
  stats,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import type { TimelineEntry } from '../hand-off/action-table.ts';
import { actionTable, timelineOf } from '../hand-off/action-table.ts';
import { isCounting } from '../hand-off/rule-text.ts';
import { type OperationsLink, readOperationsLink } from '../parts/address-link.ts';
import {
  classText,
  clockText,
  incidentHref,
  incidentSentence,
  incidentTable,
  incidentTone,
  sensorOfCapture,
} from '../parts/incident-text.ts';
import { evidenceSection, findIncident, IncidentParams, observationsOf } from './evidence.routes.ts';
import { reasonSection, remoteTable, transitionTable, vectorTable, viewTable } from './incident-tables.ts';

const relatedShown = 50;

export function registerIncident(app: App, deps: ConsoleDeps): void {
  const { incidents } = deps;
  app.get(
    '/sites/:siteId/incidents/:incidentId',
    { schema: { params: IncidentParams } },
    async (request, reply) => {
      const nowMs = Date.now();
      const site = await siteOf(deps.sites, request.params.siteId);
      const incident = await findIncident(incidents, site.id, request.params.incidentId);
      const { correlationId } = incident;
      const [detail, curve, actions, related] = await Promise.all([
        incidents.readDetail(incident.id),
        incidents.readCurve(incident.id, curveStepMs(incident)),
        deps.handOff.listActionsOf(incident.id),
        correlationId === null ? [] : incidents.list({ siteId: site.id, correlationId }, relatedShown),
      ]);
      const evidence = await deps.evidence.list(site.id, observationsOf(detail.views));
      const ids = [...new Set(detail.views.map(({ sensorId }) => sensorId))];
      const content = incidentPage(request, {
        ...{ incident, ...detail, evidence, curve, actions, nowMs },
        related: related.filter(({ id }) => id !== incident.id),
        sensors: await nameSensors(deps.db(), ids),
        inOperations: await readOperationsLink(deps.signOn),
        viewer: viewerOf(request),
      });
      const title = `${classText(incident)} ${incident.target.value}`;
      return sendConsolePage(reply, { title, site: { site, page: 'incidents' } }, content);
    },
  );

  app.get(
    '/sites/:siteId/incidents/:incidentId/curve.json',
    { schema: { params: IncidentParams } },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const incident = await findIncident(incidents, site.id, request.params.incidentId);
      const [curve, { transitions }, actions] = await Promise.all([
        incidents.readCurve(incident.id, curveStepMs(incident)),
        incidents.readDetail(incident.id),
        deps.handOff.listActionsOf(incident.id),
      ]);
      const history = { transitions, handOff: timelineOf(actions) };
      return chartJson(curveUnit(incident), curveData(incident, curve, history));
    },
  );
}

interface IncidentPage {
  incident: StoredIncident;
  views: readonly SensorView[];
  transitions: readonly StoredTransition[];
  remotes: readonly RemotePrefix[];
  /** What rules of hand-off did against it. */
  actions: readonly Action[];
  curve: readonly CurvePoint[];
  evidence: readonly EvidenceFile[];
  /** Others that began together with it. */
  related: readonly Incident[];
  sensors: ReadonlyMap<number, { hostName: string; isRevoked: boolean }>;
  inOperations: OperationsLink;
  viewer: Viewer;
  nowMs: number;
}

/** The page of one incident: its state, its curve, what it is made of, who saw it, and what happened to it. */
function incidentPage(request: FastifyRequest, page: IncidentPage): Content {
  const { incident, nowMs, siteId } = { ...page, siteId: page.incident.siteId };
  const actions = [
    link(`/sites/${siteId}/incidents`, 'All incidents', { kind: 'button' }),
    incident.target.kind === 'host' &&
      link(
        `/sites/${siteId}/protection/addresses/${encodeURIComponent(incident.target.value)}`,
        'Protection',
        { kind: 'button' },
      ),
    // Other targets are not delivered.
    incident.target.kind === 'host' && page.inOperations({ kind: 'incident', incidentId: incident.id }),
  ];
  return refreshing({ id: 'incident', url: request.url, everySeconds: 10 }, [
    pageHeader({
      title: titleOf(page),
      state: { tone: incidentTone(incident), text: incidentSentence(incident, nowMs) },
      actions,
    }),
    statements(incident),
    filterStatement(page),
    figures(incident),
    curveChart(page),
    section(
      {
        title: 'Vectors',
        description: 'The largest kinds of traffic in the strongest seconds, with their ports.',
      },
      vectorTable(request, incident),
    ),
    remoteSection(request, page),
    section(
      {
        title: 'Observed by',
        description: 'Each interface that saw the attack. The strongest counts; they are never added.',
      },
      viewTable(request, page.views, page.sensors, nowMs),
    ),
    evidenceSection(request, page),
    reasonSection(request, page),
    handOffSection(request, page),
    section(
      { title: 'Timeline', id: timelineId },
      transitionTable(request, page.transitions, page.sensors, nowMs, timelineOf(page.actions)),
    ),
    relatedSection(request, page),
    section({ title: 'Delivery to operations' }, delivery(incident, nowMs)),
  ]);
}

/** `198.51.100.7`, or `eth0 of host-1`: many hosts have an interface of that name. */
function titleOf({ incident, sensors }: IncidentPage): string {
  const { target } = incident;
  const hostName = target.kind === 'capture' && sensors.get(sensorOfCapture(incident))?.hostName;
  return hostName ? `${target.value} of ${hostName}` : target.value;
}

function statements(incident: StoredIncident): Content {
  return [
    incident.isDrill &&
      banner({
        tone: 'info',
        title: 'This is a drill',
        text: 'An operator started it. There is no such traffic.',
      }),
    isWide(incident) &&
      banner({
        tone: 'info',
        title:
          incident.target.kind === 'capture' ? 'All servers of this sensor' : 'All servers of this prefix',
        text:
          incident.target.kind === 'capture'
            ? 'The uplink as a whole is the target: it is nearly full, or has four times its usual traffic, and no single address explains it. No customer is shown this incident.'
            : 'Many addresses are attacked at once, each with less than its own threshold or together with others. No customer is shown this incident.',
      }),
    incident.mergedInto !== null &&
      banner({
        tone: 'info',
        title: 'Part of another incident',
        text: link(incidentHref({ siteId: incident.siteId, id: incident.mergedInto }), 'Show that incident'),
      }),
  ];
}

/** What filters at hypervisors do, or would do; nothing without one. */
function filterStatement({ incident, actions, nowMs }: IncidentPage): Content {
  const { filter } = incident.measured;
  const working = actions.filter(({ kind, state }) => kind === 'filter' && state === 'active');
  if (working.length === 0) return false;
  if (!filter)
    return banner({
      tone: 'info',
      title: 'A filter is on its way to the hypervisor',
      text: 'No sensor that sees the attack has reported it yet.',
    });
  const rate = `${formatCount(filter.current.pps)} packets/s`;
  const passed = `${formatCount(filter.passed.packets)} packets of addresses that conversed with the server before the attack passed.`;
  const drops = working.find((one) => !isCounting(one, nowMs));
  if (filter.isDropping && drops?.dropAtMs != null)
    return banner({
      tone: 'info',
      title: `Dropped at the hypervisor: ${rate} since ${clockText(Math.max(drops.dropAtMs, drops.startedAtMs ?? 0), nowMs)}`,
      text: `${formatCount(filter.dropped.packets)} packets, ${formatBytes(filter.dropped.bytes)} so far. ${passed}`,
    });
  return banner({
    tone: filter.problem === '' ? 'info' : 'warn',
    title:
      filter.problem === ''
        ? `The filter counts: it would drop ${rate} at the hypervisor`
        : 'The filter does not drop',
    text: `${filter.problem === '' ? '' : `The sensor says: ${filter.problem}. `}It matched ${formatCount(filter.matched.packets)} packets so far. ${passed}`,
  });
}

/** True for an attack on more than one address. */
const isWide = ({ target, direction }: StoredIncident) => target.kind !== 'host' && direction === 'inbound';

function figures({ measured, state, startedAtMs, recoveredAtMs, lastObservedAtMs }: StoredIncident): Content {
  // As in operations and in mails: to the recovery.
  const endMs = recoveredAtMs ?? lastObservedAtMs;
  const { current, peak, totals } = measured;
  const now = state === 'active' && current !== null;
  return stats(
    state === 'recovered'
      ? stat({
          label: 'Lasted',
          value: formatDuration((endMs - startedAtMs) / 1000),
          source: `until ${formatTime(endMs, 'seconds').slice(11)}`,
        })
      : stat({
          label: 'Now',
          value: now ? `${formatCount(current.pps)} packets/s` : undefined,
          source: now ? formatBitRate(current.bps) : 'not observed now',
        }),
    stat({
      label: 'Peak',
      value: `${formatCount(peak.pps)} packets/s`,
      source: `at ${formatTime(peak.ppsAtMs, 'seconds').slice(11)}`,
    }),
    stat({
      label: 'Peak',
      value: formatBitRate(peak.bps),
      source: `at ${formatTime(peak.bpsAtMs, 'seconds').slice(11)}`,
    }),
    stat({
      label: 'Total',
      value: formatBytes(totals.bytes),
      source: `${formatCount(totals.packets)} packets since ${formatTime(startedAtMs, 'seconds').slice(11)}`,
    }),
  );
}

function curveChart({ incident, curve, transitions, actions }: IncidentPage): Content {
  return chart({
    id: 'curve',
    title: 'Traffic that may be an attack',
    unit: curveUnit(incident),
    data: curveData(incident, curve, { transitions, handOff: timelineOf(actions) }),
    dataUrl: `${incidentHref(incident)}/curve.json`,
    ...(incident.state === 'recovered' ? {} : { refreshSeconds: 10 }),
    source: 'the strongest interface; dashed: the threshold',
    emptyText: 'No second of this incident is stored.',
  });
}

function remoteSection(request: FastifyRequest, { incident, remotes, viewer, nowMs }: IncidentPage): Content {
  const isInbound = incident.direction === 'inbound';
  if (!viewer.canChange)
    return section(
      { title: isInbound ? 'Sources' : 'Destinations' },
      'Only operators see addresses of other networks.',
    );
  return section(
    {
      title: isInbound ? 'Sources' : 'Destinations',
      description: isInbound
        ? 'Networks with the most packets. Source addresses of a flood are often forged.'
        : 'Networks that were sent the most packets.',
    },
    remoteTable(request, remotes, nowMs),
  );
}

function handOffSection(request: FastifyRequest, { incident, actions, viewer, nowMs }: IncidentPage) {
  if (actions.length === 0) return false;
  return section(
    { id: 'hand-off', title: 'Hand-off', description: 'Automatic actions of this site’s rules.' },
    actionTable(request, { siteId: incident.siteId, actions, viewer, nowMs, isOfIncident: true }),
  );
}

function relatedSection(request: FastifyRequest, { related, nowMs }: IncidentPage): Content {
  if (related.length === 0) return false;
  const suspects = related.filter(({ direction }) => direction === 'outbound').length;
  return section(
    {
      title: 'Began together',
      description:
        suspects > 0
          ? 'Attacks of this site within 60 s that share a class. Addresses that send are suspects.'
          : 'Attacks of this site within 60 s that share a class.',
    },
    incidentTable(request, related, nowMs),
  );
}

const outcomes: Readonly<Record<string, string>> = {
  applied: 'shown to the customer of this address',
  unchanged: 'shown to the customer of this address',
  unmatched: 'no server has this address',
  identity_conflict: 'the address has another server by now',
  terminal: 'its server is destroyed, or the incident was final',
};

function delivery(incident: StoredIncident, nowMs: number): Content {
  if (incident.target.kind !== 'host')
    return 'Not delivered: only attacks on exact addresses are matched with servers.';
  const { deliveredAtMs, deliveryOutcome, deliveredRevision, revision } = incident;
  if (deliveredAtMs === null) return 'Not delivered yet. The state of the feed is under Operations.';
  return definitionList([
    { term: 'Answer', value: outcomes[deliveryOutcome ?? ''] ?? deliveryOutcome ?? 'none' },
    { term: 'When', value: moment(deliveredAtMs, nowMs) },
    {
      term: 'Revision',
      value:
        deliveredRevision === revision
          ? `${formatCount(revision)}, the newest`
          : `${formatCount(deliveredRevision)} of ${formatCount(revision)}; the newest is on its way`,
    },
  ]);
}

// The curve of an incident, with the threshold that it exceeded, what happened to it, and times that no sensor observed.

/** Points of one chart; beyond, a point is the largest second of several. */
const pointsMax = 900;
const steps = [1, 2, 5, 10, 30, 60, 300, 600, 1800, 3600, 21_600, 86_400];

/** The unit of the threshold; packets where it is not known. */
function curveUnit({ measured: { threshold } }: Pick<Incident, 'measured'>): ChartUnit {
  return threshold !== null && isBitMetric(threshold.metric) ? 'bit/s' : 'packets/s';
}

function curveStepMs({ startedAtMs, lastObservedAtMs }: Incident): number {
  const seconds = (lastObservedAtMs - startedAtMs) / 1000;
  return (steps.find((step) => seconds / step <= pointsMax) ?? steps.at(-1)!) * 1000;
}

/** Where the timeline stands on the page of the incident. */
const timelineId = 'what-happened';

const flagTexts: Readonly<Record<TransitionKind, [text: string, tone: Tone]>> = {
  detected: ['Detected', 'bad'],
  joined: ['Another interface sees it', 'info'],
  class_changed: ['Called another class', 'info'],
  stale: ['No recent data', 'warn'],
  observed_again: ['Observed again', 'info'],
  recovered: ['Recovered', 'good'],
  reopened: ['Began again', 'bad'],
  merged: ['Another incident is a part of it', 'info'],
  withdrawn: ['Withdrawn', 'info'],
};

/** What happened to an incident. */
interface IncidentHistory {
  transitions: readonly StoredTransition[];
  handOff: readonly TimelineEntry[];
}

function curveData(incident: Incident, curve: readonly CurvePoint[], history: IncidentHistory): ChartData {
  const { threshold } = incident.measured;
  const isBits = curveUnit(incident) === 'bit/s';
  const values = curve.map((point) => (isBits ? point.bps : point.pps));
  return {
    timesMs: curve.map(({ atMs }) => atMs),
    stepMs: curveStepMs(incident),
    flags: flagsOf(incident, history),
    reasons: unobserved(incident, curve),
    series: [
      { label: 'Attack', role: 'attack', values },
      ...(threshold
        ? [{ label: 'Threshold', isExpected: true, values: curve.map(() => threshold.value) }]
        : []),
    ],
  };
}

/** In order of time. */
function flagsOf(incident: Incident, { transitions, handOff }: IncidentHistory): ChartFlag[] {
  const href = `${incidentHref(incident)}#${timelineId}`;
  const flags = [
    ...transitions.map(({ kind, atMs }): ChartFlag => {
      const [text, tone] = flagTexts[kind];
      return { timeMs: atMs, text, tone, href };
    }),
    ...handOff.map(({ atMs, text }): ChartFlag => ({ timeMs: atMs, text, tone: 'info', href })),
  ];
  return flags.sort((a, b) => a.timeMs - b.timeMs);
}

/** Between the first and the last point. */
function unobserved(incident: Incident, curve: readonly CurvePoint[]): ChartReason[] {
  const stepMs = curveStepMs(incident);
  return curve.slice(1).flatMap(({ atMs }, i): ChartReason[] => {
    const fromMs = curve[i]!.atMs + stepMs;
    return fromMs < atMs ? [{ fromMs, toMs: atMs, text: 'not observed' }] : [];
  });
}
