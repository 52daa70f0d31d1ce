/** `/`: the request for the list of sites, and for a new site. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type Episode, measuredOf, titleOf } from '#monitor/alerts/index.ts';
import type { Incident } from '#monitor/incidents/index.ts';
import { demoBanner } from '#service-kit/demo/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  age,
  agenda,
  type Content,
  chart,
  codeBlock,
  coloursOf,
  drawer,
  field,
  form,
  formatBitRate,
  formatCount,
  link,
  pageHeader,
  REST_COLOUR,
  refreshing,
  section,
  stat,
  stats,
  type Tone,
} from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';
import { placeOf } from '../alerts/alert.routes.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { incidentColumns } from '../parts/incident-text.ts';
import { enrolCommand } from '../parts/node-fields.ts';
import { collectionSentence } from '../parts/site-state.ts';
import { attackPath } from '../traffic/live.routes.ts';
import {
  alertsMax,
  readSiteLines,
  recentMs,
  type SiteLine,
  type SitesOverview,
  sitesTable,
  stepSeconds,
} from './sites-table.ts';

const Query = Type.Object({ page: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000 })) });

export function registerOverview(app: App, deps: ConsoleDeps): void {
  app.get('/', { schema: { querystring: Query } }, async (request, reply) =>
    showOverview(deps, reply, request.query.page ?? 1),
  );

  app.post(
    '/sites',
    { schema: { body: Type.Object({ name: Type.String({ maxLength: 200 }) }) } },
    async (request, reply) => {
      const { name } = request.body;
      try {
        const site = await deps.sites.create(viewerOf(request).actor, name);
        return reply.redirect(`/sites/${site.id}/settings#enrol`, 303);
      } catch (error) {
        const fault = faultText(error, 'sites.invalid', 'sites.name_taken');
        return showOverview(deps, reply, 1, { name, fault });
      }
    },
  );
}

const incidentsShown = 5;

async function showOverview(deps: ConsoleDeps, reply: FastifyReply, page: number, refused?: RefusedSite) {
  const { request } = reply;
  const nowMs = Date.now();
  const viewer = viewerOf(request);
  const first = (page - 1) * sitesShown;
  const sites = viewer.sites.slice(first, first + sitesShown);
  const known = await readSiteLines(deps, sites, nowMs);
  const open = await deps.incidents.countOpen();
  const incidents = await deps.incidents.list({}, incidentsShown);
  const attacks = open.reduce((sum, site) => sum + site.attacks + site.stale, 0);
  const enrolment = enrolCommand(deps.monitorUrl(), request, 'TOKEN');
  const content = overviewPage(request, {
    ...known,
    ...{ page, viewer, attacks, incidents, enrolment, refused, nowMs },
    demo: deps.demo && demoLine(viewer, deps.demo.attack !== null),
  });
  return sendConsolePage(reply, { title: 'Overview', status: refused ? 422 : 200 }, content);
}

/** On one page. */
const sitesShown = 50;

/** Input of a refused form for a new site. */
interface RefusedSite {
  name: string;
  fault: string;
}

interface OverviewPage extends SitesOverview {
  /** The number of this page; its lines are of some of the sites. */
  page: number;
  viewer: Viewer;
  /** Attacks of all sites that are not over. */
  attacks: number;
  /** Of all sites, the newest first. */
  incidents: readonly Incident[];
  /** The command that enrols a sensor. */
  enrolment: string;
  refused: RefusedSite | undefined;
  /** Where a visitor of the demo looks first. */
  demo: Content;
  nowMs: number;
}

function demoLine({ sites, canChange }: Viewer, hasAttack: boolean): Content {
  const site = sites.find(({ isSimulated }) => !isSimulated);
  const live = site ? [{ href: `/sites/${site.id}/live`, label: 'Live traffic' }] : [];
  return hasAttack && canChange
    ? demoBanner('Attack a server, and watch how it is detected within seconds.', [
        { href: attackPath, label: 'Attack a server' },
        ...live,
      ])
    : demoBanner('See what crosses the hypervisor, ten seconds ago.', live);
}

function overviewPage(request: FastifyRequest, overview: OverviewPage): Content {
  const { lines, page, sensors, silent, waiting, open, incidents, viewer, refused, nowMs } = overview;
  const total = viewer.sites.length;
  const newSite = newSiteForm(viewer.csrfToken, refused);
  return [
    pageHeader({
      title: 'Sites',
      state:
        total > 0 ? stateOf({ sensors, silent, waiting }, overview.newestMinuteMs, open, nowMs) : undefined,
      actions: viewer.canChange && drawer({ id: 'new-site', open: 'New site', title: 'New site' }, newSite),
    }),
    overview.demo,
    refused && newSite,
    total > 0 && sensors === 0 && firstSensor(viewer, overview.enrolment),
    refreshing({ id: 'sites', url: request.url, everySeconds: 15 }, [
      open.length > 0 && attentionSection(open, nowMs),
      sensors > 0 &&
        overallStats(
          lines,
          { sensors, silent, waiting, alerts: open.length, attacks: overview.attacks },
          nowMs,
        ),
      trafficChart(lines, nowMs),
      sitesTable(request, lines, { page, shown: sitesShown, total }, nowMs),
      incidents.length > 0 && latestIncidents(request, incidents, viewer, nowMs),
    ]),
  ];
}

const alertsShown = 5;

function attentionSection(open: readonly Episode[], nowMs: number): Content {
  return section(
    { title: 'Needs attention', actions: link('/alerts', 'All alerts', { kind: 'button' }) },
    agenda(
      'Needs attention',
      open.slice(0, alertsShown).map((episode) => ({
        tone: episode.acknowledgedAtMs === null ? 'bad' : 'warn',
        state: episode.acknowledgedAtMs === null ? 'open' : 'acknowledged',
        title: link(placeOf(episode), titleOf(episode)),
        text: [
          episode.siteName && `${episode.siteName}: `,
          measuredOf(episode),
          ', ',
          age(episode.openedAtMs, nowMs),
        ],
      })),
    ),
  );
}

/** Lines of the largest sites; the others are one. */
const chartSites = 10;

/** All traffic of the last 24 hours, site by site; nothing where none was observed. */
function trafficChart(lines: readonly SiteLine[], nowMs: number): Content {
  const times = lines[0]?.day.timesMs ?? [];
  const ratesOf = ({ day }: SiteLine) =>
    day.inBps.map((inbound, at) => {
      const outbound = day.outBps[at] ?? null;
      return inbound === null && outbound === null ? null : (inbound ?? 0) + (outbound ?? 0);
    });
  const sites = lines
    .map((line) => ({ name: line.site.name, rates: ratesOf(line) }))
    .map((site) => ({ ...site, sum: site.rates.reduce<number>((all, rate) => all + (rate ?? 0), 0) }))
    .filter(({ sum }) => sum > 0)
    .toSorted((a, b) => b.sum - a.sum);
  if (sites.length === 0) return '';
  const colours = coloursOf(sites.slice(0, chartSites).map(({ name }) => name));
  const rest = sites.slice(chartSites);
  return chart({
    id: 'traffic',
    title: 'All traffic of the last 24 hours by site',
    unit: 'bit/s',
    source: 'in and out together, means of 10 minutes; gaps stay empty',
    data: {
      timesMs: times,
      stepMs: stepSeconds * 1000,
      range: { fromMs: times[0]!, toMs: nowMs },
      shape: 'stacked',
      series: [
        ...sites
          .slice(0, chartSites)
          .map(({ name, rates }) => ({ label: name, colour: colours.get(name), values: rates })),
        ...(rest.length === 0
          ? []
          : [
              {
                label: 'Rest',
                colour: REST_COLOUR,
                values: times.map((_, at) => rest.reduce((all, { rates }) => all + (rates[at] ?? 0), 0)),
              },
            ]),
      ],
    },
  });
}

function latestIncidents(
  request: FastifyRequest,
  incidents: readonly Incident[],
  viewer: Viewer,
  nowMs: number,
): Content {
  const names = new Map(viewer.sites.map((site) => [site.id, site.name]));
  return section(
    {
      title: 'Latest incidents',
      id: 'latest',
      actions: link('/incidents', 'All incidents', { kind: 'button' }),
    },
    dataTable<Incident>(request, {
      id: 'incidents',
      caption: 'Latest incidents',
      card: { line: ['state', 'target', 'started'] },
      rows: incidents,
      isStacked: true,
      isComplete: false,
      columns: incidentColumns(nowMs, viewer.sites.length > 1 ? (row) => names.get(row.siteId) ?? '' : null),
      empty: { title: 'No incidents yet', text: 'Attacks that sensors detect appear here within seconds.' },
    }),
  );
}

/** Alerts first: they matter more than the age of the data. */
function stateOf(
  total: { sensors: number; silent: number; waiting: number },
  newestMs: number | undefined,
  open: readonly Episode[],
  nowMs: number,
): { tone: Tone; text: string } {
  const collection = collectionSentence(total, newestMs, nowMs);
  if (open.length === 0) return collection;
  const count = open.length === 1 ? '1 alert is open.' : `${formatCount(open.length)} alerts are open.`;
  const isTaken = open.every((episode) => episode.acknowledgedAtMs !== null);
  const tone = isTaken && collection.tone !== 'bad' ? 'warn' : 'bad';
  return { tone, text: `${count} ${collection.text}` };
}

function newSiteForm(csrfToken: string, refused: RefusedSite | undefined) {
  return form({ action: '/sites', csrfToken, submit: 'Create site' }, [
    field({
      ...(refused ? { id: 'field-name-refused', value: refused.name, error: refused.fault } : {}),
      name: 'name',
      label: 'Name',
      required: true,
      maxLength: 80,
      hint: 'A location with hypervisors, such as “Frankfurt 1”.',
    }),
  ]);
}

/** How to enrol the first sensor. */
function firstSensor(viewer: Viewer, enrolment: string): Content {
  const site = viewer.sites[0]!;
  return section(
    {
      title: 'Enrol the first sensor',
      description:
        'Each hypervisor runs a sensor. It needs a one-time token of its site and reports within two minutes.',
    },
    [
      codeBlock({ label: 'On the hypervisor', code: enrolment }),
      viewer.canChange &&
        actionButton({
          action: `/sites/${site.id}/settings/enrolment-tokens`,
          csrfToken: viewer.csrfToken,
          label: `Create a token for ${site.name}`,
          kind: 'primary',
        }),
    ],
  );
}

function overallStats(
  lines: readonly SiteLine[],
  {
    sensors,
    silent,
    waiting,
    alerts,
    attacks,
  }: { sensors: number; silent: number; waiting: number; alerts: number; attacks: number },
  nowMs: number,
) {
  const sum = (values: (number | null)[]) =>
    values.every((value) => value === null) ? null : values.reduce<number>((all, one) => all + (one ?? 0), 0);
  const watched = lines.filter((line) => line.sensors > 0);
  const known = watched.filter((line) => line.inBps !== null).length;
  const source =
    watched.length === 1
      ? 'newest minute'
      : `newest minutes of ${known}${known < watched.length ? ` of ${watched.length}` : ''} sites`;
  const rate = (values: (number | null)[]) => {
    const total = sum(values);
    return total === null ? undefined : formatBitRate(total);
  };
  const late = lines.filter(
    (line) => (line.newestMinuteMs ?? 0) < nowMs - recentMs && line.sensors > 0,
  ).length;
  return stats(
    stat({ label: 'In', value: rate(lines.map((line) => line.inBps)), source }),
    stat({ label: 'Out', value: rate(lines.map((line) => line.outBps)), source }),
    stat({
      label: 'Sensors reporting',
      value: `${formatCount(sensors - silent - waiting)} of ${formatCount(sensors)}`,
      source: 'contact within 3 min',
      tone: silent > 0 ? 'warn' : undefined,
    }),
    stat({
      label: 'Attacks',
      value: formatCount(attacks),
      source: attacks > 0 ? 'active or without recent data' : 'none active',
      tone: attacks > 0 ? 'bad' : undefined,
      href: '/incidents',
    }),
    stat({
      label: 'Open alerts',
      value: alerts >= alertsMax ? `${formatCount(alertsMax)} or more` : formatCount(alerts),
      source: 'at all sites',
      tone: alerts > 0 ? 'bad' : undefined,
      href: '/alerts',
    }),
    stat({
      label: 'Sites with stale data',
      value: formatCount(late),
      source: 'older than 15 min',
      tone: late > 0 ? 'warn' : undefined,
    }),
  );
}
