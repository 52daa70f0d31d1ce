/** Where settings are: telemetry processing in the environment, with present values; all others in the console. */
import type { FastifyRequest } from 'fastify';
import { live, type RunningFeed } from '#monitor/feeds/index.ts';
import {
  type Content,
  code,
  definitionList,
  formatCount,
  formatDuration,
  html,
  link,
  section,
} from '#service-kit/pages/index.ts';
import { dataTable } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';

interface Setting {
  what: string;
  value: string;
  names: string[];
}

export function processingSection(
  request: FastifyRequest,
  { processing, feeds }: Pick<ConsoleDeps, 'processing' | 'feeds'>,
): Content {
  return [
    section(
      {
        title: 'Telemetry processing',
        description:
          'Values of this process. Set in the environment of each monitor process and read at its start; see docs/settings.md.',
      },
      dataTable<Setting>(request, {
        id: 'processing',
        caption: 'Telemetry processing',
        card: { line: ['value'] },
        refreshSeconds: 0,
        isStacked: true,
        rows: [...settingsOf(processing), ...feeds.all.map((feed) => settingOf(feed, processing))],
        columns: [
          { key: 'what', header: 'What', cell: (row) => row.what, value: (row) => row.what },
          { key: 'value', header: 'Now', cell: (row) => row.value, value: (row) => row.value },
          {
            key: 'settings',
            header: 'Set by',
            kind: 'prose',
            cell: (row) => row.names.map((name) => html`${code(name)} `),
            value: (row) => row.names.join(' '),
          },
        ],
        empty: { title: 'Nothing', text: 'There is no setting.' },
      }),
    ),
    section(
      { title: 'Set in this console', description: 'Stored in the database, for all processes.' },
      definitionList([
        {
          term: 'Of a site',
          value: 'name, local prefixes and probes, under the site’s settings and availability',
        },
        {
          term: 'Of operations',
          value: html`<p>connection, automatic import, clusters and the secret of destroy notices, under ${link('/operations', 'Operations')}</p>`,
        },
        { term: 'Of alerts', value: html`<p>channels and mutes, under ${link('/alerts', 'Alerts')}</p>` },
      ]),
    ),
  ];
}

const done = (isHere: boolean, how: string) => (isHere ? how : 'by another process');

function settingOf({ feed, cadence }: RunningFeed, { roles }: ConsoleDeps['processing']): Setting {
  const isHere = cadence.isOn && roles.has(feed.name === live.name ? 'live' : 'feeds');
  return {
    what: `Feed to operations: ${feed.title}`,
    value: done(isHere, `every ${formatCount(cadence.intervalSeconds)} s`),
    names: [feed.cadence.isOn.name, feed.cadence.seconds.name],
  };
}

function settingsOf(now: ConsoleDeps['processing']): Setting[] {
  const runsLoops = now.roles.has('loops');
  return [
    {
      what: 'Uploads are applied',
      value: done(now.roles.has('inbox'), 'as they come'),
      names: ['serve --only'],
    },
    {
      what: 'Applications of 24 hours are ranked',
      value: done(now.hasRanking && runsLoops, 'every 5 min'),
      names: ['SVC_APPLICATION_RANKING'],
    },
    {
      what: 'A web process holds a ranking',
      value: `for ${formatCount(now.rankingHoldSeconds)} s`,
      names: ['SVC_APPLICATION_RANKING_HOLD_SECONDS'],
    },
    {
      what: 'Live windows are kept',
      value: `for ${formatDuration(now.liveHistorySeconds)}, at most ${formatCount(now.liveHistoryMax)} of a site`,
      names: ['SVC_LIVE_HISTORY_SECONDS', 'SVC_LIVE_HISTORY_MAXLEN'],
    },
    {
      what: 'The inventory is imported',
      value: done(
        now.hasInventorySync && now.roles.has('feeds'),
        `every ${formatCount(now.inventorySyncSeconds)} s while that is automatic`,
      ),
      names: ['SVC_OPS_INVENTORY_SYNC', 'SVC_OPS_INVENTORY_SYNC_SECONDS'],
    },
    {
      what: 'Alerts are judged',
      value: done(now.hasAlerts && runsLoops, 'continuously'),
      names: ['SVC_MONITOR_ALERTS'],
    },
    {
      what: 'What has expired is removed',
      value: done(now.hasMaintenance && runsLoops, 'every hour'),
      names: ['SVC_MONITOR_MAINTENANCE'],
    },
  ];
}
