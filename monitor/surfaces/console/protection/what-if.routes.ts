/** `/sites/{id}/protection/addresses/{address}/what-if`: the request for a replay. It changes nothing. */

import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Incident } from '#monitor/incidents/index.ts';
import {
  type AddressProtection,
  type ComparedIncident,
  type Learned,
  metricNames,
  noChoices,
  type ThresholdTexts,
  type WhatIf,
  whatIfDays,
  withProposals,
} from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  type Content,
  code,
  form,
  formatCount,
  formatTime,
  type Html,
  hiddenField,
  html,
  link,
  pageHeader,
  section,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { dataTable, timeColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { classText, incidentHref } from '../parts/incident-text.ts';
import { explain } from './address.routes.ts';
import {
  type Refused,
  rateText,
  readTexts,
  refusalOf,
  textsOf,
  thresholdFields,
  thresholdFilter,
  thresholdProperties,
} from './threshold-parts.ts';

const Params = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const Query = Type.Object({ ...thresholdProperties, learn: Type.Optional(Type.String({ maxLength: 4 })) });

/** Incidents of the address to which the table links, the newest. */
const incidentsMax = 500;

export function registerWhatIf(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/addresses/:address/what-if';
  app.get(path, { schema: { params: Params, querystring: Query } }, async (request, reply) => {
    const { siteId } = request.params;
    const site = await siteOf(deps.sites, siteId);
    const found = await explain(deps, siteId, request.params.address);
    const texts = readTexts(request.query);
    const nowMs = deps.clock.nowMs();
    let refused: Refused | undefined;
    const asking = deps.protection.askWhatIf(siteId, found.address, texts, nowMs).catch((error: unknown) => {
      refused = refusalOf(error, request.query);
      return null;
    });
    const [answer, incidents, learned] = await Promise.all([
      asking,
      deps.incidents.list({ siteId, address: found.address }, incidentsMax),
      // It sorts every minute, so only where it was asked for.
      request.query.learn === undefined ? null : deps.protection.learn(siteId, found.address, nowMs),
    ]);
    return sendConsolePage(
      reply,
      {
        title: `What if: ${found.address}`,
        site: { site, page: 'protection' },
        status: refused?.status ?? 200,
      },
      whatIfPage(request, {
        site,
        found,
        texts,
        answer,
        incidents,
        refused,
        learned,
        viewer: viewerOf(request),
      }),
    );
  });
}

interface WhatIfPage {
  site: Site;
  found: AddressProtection;
  /** As typed; blank fields stand for the present thresholds. */
  texts: ThresholdTexts;
  /** Null: the texts were refused. */
  answer: WhatIf | null;
  refused: Refused | undefined;
  /** What was detected of the address. */
  incidents: readonly Incident[];
  /** Null: no proposals were asked for. */
  learned: Learned | null;
  viewer: Viewer;
}

/** What other thresholds would have found in the stored minutes of an address, and which would fit its traffic. */
function whatIfPage(request: FastifyRequest, page: WhatIfPage): Content {
  const { site, found, texts, answer, refused } = page;
  const path = `/sites/${site.id}/protection/addresses/${encodeURIComponent(found.address)}`;
  return [
    pageHeader({
      title: html`What if: ${code(found.address)}`,
      state: answer ? stateOf(answer) : { tone: 'bad', text: 'Correct the marked thresholds.' },
      actions: link(path, 'Protection of this address', { kind: 'button' }),
    }),
    answer &&
      section(
        {
          id: 'findings',
          title: 'Incidents compared',
          description: `In the last ${whatIfDays} days: which incidents of the present thresholds these would keep or lose, and which are new. Sensors decide by single seconds; stored are the largest second and the largest ten seconds of each minute, so some are only possible.${olderText(answer.olderMinutes)}`,
          actions: hasTexts(texts) ? applyForm(page, texts, 'Use these thresholds') : null,
        },
        findingTable(request, answer, page.incidents),
      ),
    section(
      { id: 'thresholds', title: 'Thresholds to try' },
      thresholdFilter({
        action: `${path}/what-if`,
        submit: 'Replay',
        id: 'what-if',
        texts,
        inherited: (direction, metric) => found.thresholds[direction][metric],
        refused,
      }),
    ),
    learnSection(page),
  ];
}

const minutesText = (count: number) => `${formatCount(count)} ${count === 1 ? 'minute' : 'minutes'}`;

/** What an older sensor stored holds ordinary traffic too. */
const olderText = (minutes: number) =>
  minutes === 0
    ? ''
    : ` ${formatCount(minutes)} of the minutes ${minutes === 1 ? 'was' : 'were'} counted by the rule of before, by flows: tunnels, calls and games count in them as what may be an attack.`;

function stateOf({ findings, present, compared, minutes, fromMs }: WhatIf): { tone: Tone; text: Content } {
  if (minutes === 0)
    return {
      tone: 'neutral',
      text: 'No sensor has reported detector minutes of this address yet, so nothing can be replayed.',
    };
  const times = (n: number) => (n === 1 ? 'once' : `${formatCount(n)} times`);
  const certain = findings.filter((one) => one.isCertain).length;
  const sure =
    findings.length === 0 || certain === findings.length
      ? ''
      : certain === 0
        ? ', none of them certain'
        : `, ${formatCount(certain)} of them certain`;
  const counts = (['kept', 'lost', 'new'] as const).flatMap((outcome) => {
    const count = compared.filter((one) => one.outcome === outcome).length;
    return count === 0 ? [] : [`${formatCount(count)} ${outcome}`];
  });
  const difference = compared.length === 0 ? '' : ` Compared: ${counts.join(', ')}.`;
  return {
    tone: compared.some((one) => one.outcome !== 'kept') ? 'warn' : 'good',
    text: `Would ${findings.length === 0 ? 'never have fired' : `have fired ${times(findings.length)}`}${sure}; the present thresholds ${present.length === 0 ? 'never' : times(present.length)}.${difference} From ${minutesText(minutes)} with traffic since ${formatTime(fromMs, 'day')}.`,
  };
}

const outcomeTones: Readonly<Record<ComparedIncident['outcome'], Tone>> = {
  kept: 'neutral',
  lost: 'bad',
  new: 'warn',
};

const ruleText = ({ isOlderRule }: ComparedIncident) => (isOlderRule ? 'by flows' : 'by pairs');
const ruleColumn = { key: 'rule', header: 'Counted', cell: ruleText, value: ruleText };

/** What thresholds make of it: an incident, and how often its peak was their value. */
const sideCell = (isIncident: boolean, ratio: number | null): Content => [
  isIncident ? 'incident' : 'no incident',
  html` <span class="hint">${ratio === null ? 'not judged' : `${ratio.toFixed(2)} × threshold`}</span>`,
];

/** Those that change, then the others; the newest first. */
const differencesFirst = (compared: readonly ComparedIncident[]): ComparedIncident[] =>
  compared.toReversed().toSorted((a, b) => Number(a.outcome === 'kept') - Number(b.outcome === 'kept'));

/** The incident that was detected at that time; its page says why. */
const detectedIn = (incidents: readonly Incident[], row: ComparedIncident) =>
  incidents.find(
    ({ direction, startedAtMs, lastObservedAtMs }) =>
      direction === row.direction && startedAtMs < row.toMs && lastObservedAtMs >= row.fromMs,
  );

function findingTable(
  request: FastifyRequest,
  { compared, minutes, olderMinutes }: WhatIf,
  incidents: readonly Incident[],
): Html {
  return dataTable<ComparedIncident>(request, {
    id: 'findings',
    caption: 'Incidents compared',
    card: { line: ['present_ratio', 'ratio', 'metric', 'peak'] },
    refreshSeconds: 0,
    isStacked: true,
    rows: differencesFirst(compared),
    columns: [
      timeColumn('from', 'From', (row) => row.fromMs),
      timeColumn('to', 'To', (row) => row.toMs),
      {
        key: 'present_ratio',
        header: 'Present thresholds',
        cell: (row) => sideCell(row.outcome !== 'new', row.presentRatio),
        value: (row) => row.presentRatio,
      },
      {
        key: 'ratio',
        header: 'These thresholds',
        cell: (row) => [
          sideCell(row.outcome !== 'lost', row.ratio),
          row.outcome !== 'kept' && html` ${badge(outcomeTones[row.outcome], row.outcome)}`,
          row.outcome !== 'lost' && !row.isCertain && html` <span class="hint">possible</span>`,
        ],
        value: (row) => row.ratio,
      },
      {
        key: 'metric',
        header: 'Exceeded most',
        cell: (row) => html`${metricNames[row.metric]}, ${row.direction}`,
        value: (row) => `${row.direction} ${row.metric}`,
      },
      {
        key: 'peak',
        header: 'Peak',
        kind: 'figure',
        cell: (row) => rateText(row.metric, row.rate),
        value: (row) => row.rate,
      },
      {
        key: 'detected',
        header: 'Detected',
        cell: (row) => {
          const incident = detectedIn(incidents, row);
          return incident ? link(incidentHref(incident), classText(incident)) : 'nothing';
        },
        value: (row) => detectedIn(incidents, row)?.id ?? null,
      },
      ...(olderMinutes === 0 ? [] : [ruleColumn]),
    ],
    fields: [
      { field: 'outcome', value: (row) => row.outcome },
      { field: 'certainty', value: (row) => (row.isCertain ? 'certain' : 'possible') },
    ],
    empty:
      minutes === 0
        ? {
            title: 'Nothing to replay',
            text: 'Minutes appear when a sensor that protects this address has reported them.',
          }
        : { title: 'Never', text: 'No stored minute reaches these thresholds or the present ones.' },
  });
}

const hasTexts = (texts: ThresholdTexts) =>
  [texts.inbound, texts.outbound].some((one) => Object.values(one).some((text) => text.trim() !== ''));

/** Sends thresholds to the form of the address: those that it sets already, with these on top. */
function applyForm({ site, found, viewer }: WhatIfPage, texts: ThresholdTexts, submit: string): Html | null {
  if (!viewer.canChange) return null;
  const own = found.applying.address;
  const stored = textsOf(own?.thresholds ?? noChoices);
  const value = (name: string) => {
    const [direction, metric] = name.split('.') as ['inbound' | 'outbound', keyof ThresholdTexts['inbound']];
    return texts[direction][metric]?.trim() || (stored[direction][metric] ?? '');
  };
  return form(
    {
      action: `/sites/${site.id}/protection/addresses/${encodeURIComponent(found.address)}`,
      csrfToken: viewer.csrfToken,
      submit,
      layout: 'inline',
    },
    [
      hiddenField('revision', own?.revision ?? 0),
      thresholdFields.map((name) => hiddenField(name, value(name))),
    ],
  );
}

function learnSection(page: WhatIfPage): Content {
  const { learned, site, found } = page;
  if (!learned) {
    const path = `/sites/${site.id}/protection/addresses/${encodeURIComponent(found.address)}`;
    return section(
      {
        id: 'learn',
        title: 'Learn from its traffic',
        description:
          'Proposes thresholds from the 99.9th percentile of its strongest seconds. Nothing is saved.',
        actions: link(`${path}/what-if?learn=1#learn`, 'Propose thresholds', { kind: 'button' }),
      },
      null,
    );
  }
  const description = `Twice the 99.9th percentile of the strongest second of ${minutesText(learned.minutes)} with traffic. Nothing changes until you apply it; values of attacks count too, so review them.${olderText(learned.olderMinutes)}`;
  if (!learned.isEnough)
    return section(
      { id: 'learn', title: 'Learn from its traffic' },
      html`<p class="hint">So far: ${minutesText(learned.minutes)} with traffic. A proposal needs at least 1,440, a day.</p>`,
    );
  return section(
    {
      id: 'learn',
      title: 'Learn from its traffic',
      description,
      actions:
        learned.proposals.length > 0
          ? applyForm(page, textsOf(withProposals(noChoices, learned.proposals)), 'Apply proposals')
          : null,
    },
    table<Learned['proposals'][number]>({
      caption: 'Proposed thresholds',
      card: { line: ['now', 'proposed'] },
      refreshSeconds: 0,
      isStacked: true,
      rows: learned.proposals,
      columns: [
        {
          key: 'metric',
          header: 'Traffic',
          cell: (row) => html`${metricNames[row.metric]}, ${row.direction}`,
        },
        {
          key: 'percentile',
          header: '99.9th percentile',
          kind: 'figure',
          cell: (row) => rateText(row.metric, row.percentile),
        },
        { key: 'now', header: 'Now', kind: 'figure', cell: (row) => rateText(row.metric, row.now) },
        {
          key: 'proposed',
          header: 'Proposed',
          kind: 'figure',
          cell: (row) => rateText(row.metric, row.proposed),
        },
      ],
      empty: { title: 'Nothing to change', text: 'The present thresholds fit its traffic.' },
    }),
  );
}
