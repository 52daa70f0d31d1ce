/** `/sites/{id}/protection/groups/{group}/what-if`: starting, following and cancelling the replay of a group. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { thresholdDefaults } from '#contracts/sensor-api/detection.ts';
import {
  type GroupReplay,
  type HostGroup,
  metricNames,
  type ReplayedAddress,
  replayAddressesMax,
  resolveLevels,
  type SiteProtection,
  whatIfDays,
} from '#monitor/protection/index.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  badge,
  banner,
  type Content,
  code,
  definitionList,
  formatCount,
  formatTime,
  type Html,
  html,
  isoTime,
  link,
  pageHeader,
  progress,
  refreshing,
  section,
  type Tone,
  utcTime,
} from '#service-kit/pages/index.ts';
import { countColumn, dataTable, figureColumn, linkColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { DoneQuery, faultText, sendConsolePage, siteOf } from '../frame.ts';
import { type Viewer, viewerOf } from '../guard.ts';
import { GroupParams, noGroup } from './group.routes.ts';
import {
  type Refused,
  rateText,
  readTexts,
  refusalOf,
  textsOf,
  thresholdOrder,
  thresholdProperties,
} from './threshold-parts.ts';

const ReplayParams = Type.Object({ ...GroupParams.properties, replayId: Type.String({ format: 'uuid' }) });
const Query = Type.Object({ replay: Type.Optional(Type.String({ maxLength: 36 })), ...DoneQuery.properties });
const replaysShown = 20;
const done: Readonly<Record<string, string>> = {
  started: 'The replay has started.',
  cancelled: 'The replay was cancelled.',
};

export function registerGroupWhatIf(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/groups/:groupId/what-if';
  app.get(path, { schema: { params: GroupParams, querystring: Query } }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    return show(deps, reply, site, request.params.groupId);
  });

  app.post(
    path,
    { schema: { params: GroupParams, body: Type.Object(thresholdProperties) } },
    async (request, reply) => {
      const { siteId, groupId } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const { actor } = viewerOf(request);
      try {
        const id = await deps.protection.startGroupReplay(actor, siteId, groupId, readTexts(request.body));
        if (id === null) throw noGroup();
      } catch (error) {
        return show(deps, reply, site, groupId, refusalOf(error, request.body));
      }
      return reply.redirect(`${groupWhatIfHref(siteId, groupId)}?done=started`, 303);
    },
  );

  app.post(`${path}/:replayId/cancel`, { schema: { params: ReplayParams } }, async (request, reply) => {
    const { siteId, groupId, replayId } = request.params;
    await siteOf(deps.sites, siteId);
    let isCancelled = false;
    try {
      isCancelled = await deps.protection.cancelGroupReplay(viewerOf(request).actor, siteId, replayId);
    } catch (error) {
      faultText(error);
    }
    return reply.redirect(`${groupWhatIfHref(siteId, groupId)}${isCancelled ? '?done=cancelled' : ''}`, 303);
  });
}

async function show(deps: ConsoleDeps, reply: FastifyReply, site: Site, groupId: number, refused?: Refused) {
  const { request } = reply;
  const { protection } = deps;
  const [found, replays] = await Promise.all([
    protection.describeSite(site.id, site.localCidrs),
    protection.listGroupReplays(site.id, groupId, replaysShown),
  ]);
  const group = found.settings.groups.find((one) => one.id === groupId);
  if (!group) throw noGroup();
  const { replay: wanted } = request.query as { replay?: string };
  const replay = replays.find(({ id }) => id === wanted) ?? replays[0];
  const shown = replay ? { replay, addresses: await protection.listReplayed(site.id, replay.id) } : null;
  const nowMs = deps.clock.nowMs();
  return sendConsolePage(
    reply,
    {
      title: `What if: ${group.name}`,
      site: { site, page: 'protection' },
      status: refused?.status ?? 200,
      done,
    },
    groupWhatIfPage(request, {
      site,
      found,
      group,
      replays,
      shown,
      viewer: viewerOf(request),
      nowMs,
      refused,
    }),
  );
}

interface GroupWhatIfPage {
  site: Site;
  found: SiteProtection;
  group: HostGroup;
  /** The newest first. */
  replays: readonly GroupReplay[];
  /** The one that is shown, with what it found so far. */
  shown: { replay: GroupReplay; addresses: readonly ReplayedAddress[] } | null;
  viewer: Viewer;
  nowMs: number;
  refused?: Refused | undefined;
}

/** What other thresholds would have found of all addresses of a group: the replay under way, and those that are kept. */
const groupWhatIfHref = (siteId: number, groupId: number): string =>
  `/sites/${siteId}/protection/groups/${groupId}/what-if`;

function groupWhatIfPage(request: FastifyRequest, page: GroupWhatIfPage): Content {
  const { site, group, shown, replays } = page;
  const title = pageHeader({
    title: `What if: ${group.name}`,
    state: stateOf(page),
    actions: [
      shown && cancelButton(page, shown.replay),
      link(`/sites/${site.id}/protection/groups/${group.id}`, 'This group', { kind: 'button' }),
    ],
  });
  const found = [shown && progressOf(shown.replay), shown && foundSection(request, page, shown)];
  const isOpen = shown !== null && shown.replay.finishedAtMs === null;
  return [
    isOpen
      ? refreshing({ id: 'replay', url: request.url, everySeconds: 3 }, [title, ...found])
      : [title, ...found],
    orderSection(page),
    replays.length > 1 && section({ id: 'replays', title: 'Replays' }, replayTable(request, page)),
  ];
}

const times = (n: number) => (n === 1 ? 'once' : `${formatCount(n)} times`);

function stateOf({ shown, refused }: GroupWhatIfPage): { tone: Tone; text: Content } {
  if (refused) return { tone: 'bad', text: refused.message };
  if (!shown) return { tone: 'neutral', text: 'Nothing was replayed yet.' };
  const { replay, addresses } = shown;
  const fired = addresses.reduce((sum, one) => sum + one.fired, 0);
  const present = addresses.reduce((sum, one) => sum + one.present, 0);
  const hosts = addresses.filter((one) => one.fired > 0).length;
  const lost = addresses.reduce((sum, one) => sum + (one.lost ?? 0), 0);
  const difference = lost === 0 ? '' : `, of which ${formatCount(lost)} would be lost`;
  const result = `${fired === 0 ? 'never have fired' : `have fired ${times(fired)}, at ${formatCount(hosts)} of ${formatCount(addresses.length)} addresses`}; the present thresholds ${present === 0 ? 'never' : times(present)}${difference}`;
  if (replay.finishedAtMs === null) return { tone: 'info', text: `Under way. So far it would ${result}.` };
  if (replay.cancelledBy !== null)
    return { tone: 'neutral', text: `Cancelled by ${replay.cancelledBy}. Up to then it would ${result}.` };
  if (replay.failure !== null) return { tone: 'bad', text: replay.failure };
  if (addresses.length === 0)
    return { tone: 'neutral', text: 'No protected address is in this group, so nothing was replayed.' };
  return { tone: fired > 0 ? 'warn' : 'good', text: `Would ${result}.` };
}

function progressOf({ finishedAtMs, addresses, done }: GroupReplay): Content {
  if (finishedAtMs !== null) return null;
  if (addresses === null)
    return html`<div class="card">${progress({ label: 'Listing addresses', detail: 'You may leave this page.' })}</div>`;
  return html`<div class="card">${progress({
    ...{ label: 'Replaying addresses', value: done, max: Math.max(1, addresses) },
    detail: `${formatCount(done)} of ${formatCount(addresses)}; you may leave this page.`,
  })}</div>`;
}

function cancelButton({ site, group, viewer }: GroupWhatIfPage, replay: GroupReplay): Content {
  if (!viewer.canChange || replay.finishedAtMs !== null) return null;
  const action = `${groupWhatIfHref(site.id, group.id)}/${replay.id}/cancel`;
  return actionButton({ action, csrfToken: viewer.csrfToken, label: 'Cancel' });
}

function foundSection(
  request: FastifyRequest,
  { site }: GroupWhatIfPage,
  { replay, addresses }: NonNullable<GroupWhatIfPage['shown']>,
): Content {
  const asked = textsOf(replay.asked);
  const query = new URLSearchParams(
    (['inbound', 'outbound'] as const).flatMap((direction) =>
      Object.entries(asked[direction]).map(([metric, text]): [string, string] => [
        `${direction}.${metric}`,
        text ?? '',
      ]),
    ),
  ).toString();
  const hrefOf = ({ address }: ReplayedAddress) =>
    `/sites/${site.id}/protection/addresses/${encodeURIComponent(address)}/what-if${query && `?${query}`}`;
  return section(
    {
      id: 'found',
      title: 'Would have fired',
      description: `In the last ${whatIfDays} days, asked ${formatTime(replay.askedAtMs)} by ${replay.askedBy}.`,
    },
    [
      definitionList([{ term: 'Thresholds', value: askedText(replay) }]),
      (replay.addresses ?? 0) >= replayAddressesMax &&
        banner({
          tone: 'warn',
          title: `Only the first ${formatCount(replayAddressesMax)} addresses are replayed. Split the group to see the others.`,
        }),
      addressTable(request, addresses, hrefOf, replay.finishedAtMs === null),
    ],
  );
}

function askedText({ asked }: GroupReplay): string {
  const all = (['inbound', 'outbound'] as const).flatMap((direction) =>
    Object.entries(asked[direction]).map(
      ([metric, value]) =>
        `${metricNames[metric as keyof typeof metricNames]} ${direction}: ${rateText(metric as keyof typeof metricNames, value ?? null)}`,
    ),
  );
  return all.length === 0 ? 'the present ones' : all.join('; ');
}

function addressTable(
  request: FastifyRequest,
  rows: readonly ReplayedAddress[],
  hrefOf: (row: ReplayedAddress) => string,
  isOpen: boolean,
): Html {
  return dataTable<ReplayedAddress>(request, {
    id: 'addresses',
    caption: 'Addresses',
    card: { line: ['fired', 'lost', 'strongest'] },
    refreshSeconds: 0,
    isStacked: true,
    rows,
    columns: [
      linkColumn('address', 'Address', (row) => [row.address, hrefOf(row)], { show: code }),
      figureColumn(
        'fired',
        'Would have fired',
        (row) => row.fired,
        (fired) => (fired === 0 ? 'never' : times(fired)),
      ),
      countColumn('certain', 'Certain', (row) => row.certain),
      figureColumn(
        'present',
        'Present thresholds',
        (row) => row.present,
        (present) => (present === 0 ? 'never' : times(present)),
      ),
      ...(['lost', 'added'] as const).map((key) => ({
        key,
        header: key === 'lost' ? 'Lost' : 'New',
        kind: 'figure' as const,
        cell: (row: ReplayedAddress) => (row[key] === null ? 'not compared' : formatCount(row[key])),
        value: (row: ReplayedAddress) => row[key],
      })),
      {
        key: 'strongest',
        header: 'Strongest second',
        cell: ({ strongest: one }) =>
          one
            ? html`${rateText(one.metric, one.rate)}, ${one.ratio.toFixed(2)} times <div class="hint">${metricNames[one.metric]}, ${one.direction}, ${utcTime(one.fromMs)}</div>`
            : html`<span class="hint">none</span>`,
        value: ({ strongest }) => strongest?.ratio ?? null,
      },
      countColumn('minutes', 'Minutes with traffic', (row) => row.minutes),
    ],
    empty: isOpen
      ? { title: 'Nothing yet', text: 'Addresses appear as they are replayed.' }
      : { title: 'No addresses', text: 'No address of this group was replayed.' },
  });
}

function orderSection({ site, found, group, viewer, refused, shown }: GroupWhatIfPage): Content {
  if (!viewer.canChange) return null;
  if (shown?.replay.finishedAtMs === null) return null;
  const { settings } = found;
  const resolved = resolveLevels(thresholdDefaults, [
    { level: 'site', choices: settings.site.thresholds },
    { level: 'group', choices: group.thresholds },
  ]);
  return section(
    {
      id: 'thresholds',
      title: 'Thresholds to try',
      description:
        'Replayed in the background for each address of the group, beside what its server or the address itself sets. Nothing of the group changes.',
    },
    thresholdOrder({
      action: groupWhatIfHref(site.id, group.id),
      csrfToken: viewer.csrfToken,
      submit: 'Replay the group',
      id: 'group-what-if',
      texts: refused
        ? readTexts(refused.typed)
        : textsOf(shown?.replay.asked ?? { inbound: {}, outbound: {} }),
      inherited: (direction, metric) => resolved[direction][metric].value,
      refused,
    }),
  );
}

function replayTable(request: FastifyRequest, { site, group, replays }: GroupWhatIfPage): Html {
  return dataTable<GroupReplay>(request, {
    id: 'replays',
    caption: 'Replays',
    card: { line: ['state', 'addresses'] },
    isStacked: true,
    rows: replays,
    columns: [
      {
        key: 'asked',
        header: 'Asked',
        cell: (row) =>
          html`${link(`${groupWhatIfHref(site.id, group.id)}?replay=${row.id}`, formatTime(row.askedAtMs, 'seconds'))} <div class="hint">by ${row.askedBy}</div>`,
        field: 'asked_at',
        value: (row) => isoTime(row.askedAtMs),
      },
      {
        key: 'state',
        header: 'State',
        cell: (row) => badge(...stateBadge(row)),
        value: (row) => stateBadge(row)[1],
      },
      {
        key: 'addresses',
        header: 'Addresses',
        kind: 'figure',
        cell: (row) =>
          `${formatCount(row.done)} of ${row.addresses === null ? '?' : formatCount(row.addresses)}`,
        value: (row) => row.done,
      },
      { key: 'thresholds', header: 'Thresholds', kind: 'prose', cell: askedText, value: askedText },
    ],
    empty: { title: 'No replays', text: 'Nothing was replayed yet.' },
  });
}

function stateBadge({ finishedAtMs, cancelledBy, failure }: GroupReplay): [Tone, string] {
  if (finishedAtMs === null) return ['info', 'under way'];
  if (cancelledBy !== null) return ['neutral', 'cancelled'];
  return failure === null ? ['good', 'done'] : ['bad', 'failed'];
}
