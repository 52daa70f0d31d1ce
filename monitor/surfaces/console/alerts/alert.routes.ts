/** `/alerts/{id}`: the request for one alert, its acknowledgement and its mute. */
import { Type } from 'typebox';
import { Id } from '#contracts/scalars.ts';
import { type Episode, measuredOf, titleOf } from '#monitor/alerts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  badge,
  type Content,
  definitionList,
  field,
  form,
  formatDuration,
  html,
  link,
  moment,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, notFound, sendConsolePage } from '../frame.ts';
import type { Viewer } from '../guard.ts';
import { viewerOf } from '../guard.ts';
import { serverHref } from '../vulnerabilities/finding-text.ts';

const muteHours = [1, 8, 24, 168] as const;

const Params = Type.Object({ episodeId: Id });
const Note = Type.Object({ note: Type.Optional(Type.String({ maxLength: 500 })) });
const Mute = Type.Object({
  hours: Type.Union([0, ...muteHours].map((hours) => Type.Literal(String(hours)))),
});

export function registerAlert(app: App, deps: ConsoleDeps): void {
  app.get('/alerts/:episodeId', { schema: { params: Params } }, async (request, reply) => {
    const episode = await deps.alerts.find(request.params.episodeId);
    if (!episode) throw notFound('This alert no longer exists.');
    const content = alertPage(episode, viewerOf(request), Date.now());
    return sendConsolePage(reply, { title: titleOf(episode), isNarrow: true }, content);
  });

  app.post(
    '/alerts/:episodeId/acknowledge',
    { schema: { params: Params, body: Note } },
    async (request, reply) => {
      const { actor, operator } = viewerOf(request);
      const { episodeId } = request.params;
      await done(deps.alerts.acknowledge(actor, episodeId, operator.name, request.body.note ?? ''), 'alert');
      return reply.redirect('/alerts?saved=1', 303);
    },
  );
  app.post('/alerts/:episodeId/mute', { schema: { params: Params, body: Mute } }, async (request, reply) => {
    const { actor, operator } = viewerOf(request);
    const { episodeId } = request.params;
    await done(deps.alerts.mute(actor, episodeId, operator.name, Number(request.body.hours)), 'alert');
    return reply.redirect('/alerts?saved=1', 303);
  });
}

/** Throws a 404 when the action found nothing. */
export async function done(action: Promise<boolean>, what: string): Promise<void> {
  let isDone = false;
  try {
    isDone = await action;
  } catch (error) {
    faultText(error);
  }
  if (!isDone) throw notFound(`This ${what} no longer exists.`);
}

// The page of one alert, its acknowledgement and its mute.

function alertPage(episode: Episode, viewer: Viewer, nowMs: number): Content {
  const isOpen = episode.resolvedAtMs === null;
  return [
    pageHeader({
      title: titleOf(episode),
      state: isOpen
        ? {
            tone: 'bad',
            text: `Open for ${formatDuration((nowMs - episode.openedAtMs) / 1000)}: ${measuredOf(episode)}.`,
          }
        : { tone: 'good', text: `Resolved: ${episode.resolution}.` },
      actions: [
        link(placeOf(episode), 'Show cause', { kind: 'button' }),
        link('/alerts', 'All alerts', { kind: 'button' }),
      ],
    }),
    definitionList([
      { term: 'Site', value: episode.siteName },
      { term: 'Opened', value: moment(episode.openedAtMs, nowMs) },
      { term: 'Resolved', value: isOpen ? 'not yet' : moment(episode.resolvedAtMs, nowMs) },
      { term: 'Measured', value: measuredOf(episode) },
      { term: 'State', value: careOf(episode, nowMs) },
    ]),
    isOpen && viewer.canChange && forms(episode, viewer),
  ];
}

/** The page that shows the cause. */
export function placeOf({ siteId, subjectKey }: Pick<Episode, 'siteId' | 'subjectKey'>): string {
  const [subject, id, serverId] = subjectKey.split(':');
  if (subject === 'incident') return `/sites/${siteId}/incidents/${id}`;
  if (subject === 'probe') return `/sites/${siteId}/availability/${id}`;
  if (siteId === null) return subject === 'vulnerability-copy' ? '/system/vulnerability-database' : '/system';
  if (subject === 'hand-off') return `/sites/${siteId}/protection/hand-off`;
  if (subject === 'server') return serverHref(siteId, { clusterId: Number(id), serverId: Number(serverId) });
  // A sensor, or one of its captures.
  return `/sites/${siteId}/sensors/${id}`;
}

/** Acknowledgement and mute of an episode. */
export function careOf(episode: Episode, nowMs: number): Content {
  const care =
    episode.acknowledgedBy === null
      ? episode.resolvedAtMs === null && badge('bad', 'not acknowledged')
      : html`${badge('warn', `acknowledged by ${episode.acknowledgedBy}`)}${episode.note && html` <span class="hint">${episode.note}</span>`}`;
  return [
    episode.resolvedAtMs === null && episode.goodSinceMs !== null && html`${badge('info', 'recovering')} `,
    care,
    episode.mutedUntilMs !== null &&
      html` ${badge('neutral', `muted for ${formatDuration((episode.mutedUntilMs - nowMs) / 1000)}`)}`,
  ];
}

function forms(episode: Episode, { csrfToken }: Viewer): Content {
  const action = `/alerts/${episode.id}`;
  return [
    section(
      {
        title: 'Acknowledge',
        description: 'Shows others that you work on it. The alert stays open until it recovers.',
      },
      form({ action: `${action}/acknowledge`, csrfToken, submit: 'Acknowledge' }, [
        field({
          name: 'note',
          label: 'Note',
          maxLength: 500,
          value: episode.note ?? '',
          hint: 'What you do about it. Visible to everyone.',
        }),
      ]),
    ),
    section(
      { title: 'Mute', description: 'The alert stays open; no notifications are sent for this subject.' },
      episode.mutedUntilMs === null
        ? form({ action: `${action}/mute`, csrfToken, submit: 'Mute', submitKind: 'button' }, [
            field({
              kind: 'select',
              name: 'hours',
              label: 'For',
              value: '8',
              options: muteHours.map((hours) => ({
                value: String(hours),
                label: formatDuration(hours * 3600),
              })),
            }),
          ])
        : actionButton({ action: `${action}/mute`, csrfToken, label: 'Unmute', fields: { hours: 0 } }),
    ),
  ];
}
