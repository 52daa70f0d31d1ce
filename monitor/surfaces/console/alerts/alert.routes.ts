/** `/alerts/{id}`: the request for one alert, its acknowledgement and its mute. */
import { Type } from 'typebox';
import { titleOf } from '#monitor/alerts/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { alertPage, muteHours } from './alert.page.ts';

const Params = Type.Object({ episodeId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
const Note = Type.Object({ note: Type.Optional(Type.String({ maxLength: 500 })) });
const Mute = Type.Object({
  hours: Type.Union([0, ...muteHours].map((hours) => Type.Literal(String(hours)))),
});

export function registerAlert(app: App, deps: ConsoleDeps): void {
  app.get('/alerts/:episodeId', { schema: { params: Params } }, async (request, reply) => {
    const episode = await deps.alerts.find(request.params.episodeId);
    if (!episode) throw new HttpError(404, { code: 'not_found', message: 'This alert no longer exists.' });
    const content = alertPage(episode, viewerOf(request), Date.now());
    return sendConsolePage(request, reply, { title: titleOf(episode), isNarrow: true }, content);
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
  if (!isDone) throw new HttpError(404, { code: 'not_found', message: `This ${what} no longer exists.` });
}
