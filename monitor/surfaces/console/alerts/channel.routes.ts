/** `/alerts/channels`: the forms of notification channels, and what operators may do to one. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type ChannelInput, type ChannelKindName, channelKindOf } from '#monitor/alerts/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { done } from './alert.routes.ts';
import { channelPage, type TypedChannel } from './channel.page.ts';

const ChannelParams = Type.Object({
  channelId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
});
const Kind = Type.Object({ kind: Type.Optional(Type.String({ maxLength: 40 })) });
/** A field for each setting, site and kind of alert: which there are is the kind's and the installation's. */
const ChannelForm = Type.Record(Type.String({ maxLength: 80 }), Type.String({ maxLength: 20_000 }), {
  maxProperties: 1000,
});
const faults = ['alerts.invalid', 'alerts.limit', 'webhooks.invalid'] as const;

/** `showAlerts` answers a new webhook: only this answer contains its signing secret. */
export function registerChannels(
  app: App,
  deps: ConsoleDeps,
  showAlerts: (request: FastifyRequest, reply: FastifyReply, secret: string) => Promise<FastifyReply>,
): void {
  app.get('/alerts/channels/new', { schema: { querystring: Kind } }, (request, reply) =>
    showChannel(deps, request, reply, { kind: request.query.kind ?? 'email' }),
  );
  app.get('/alerts/channels/:channelId', { schema: { params: ChannelParams } }, (request, reply) =>
    showChannel(deps, request, reply, { channelId: request.params.channelId }),
  );
  app.post('/alerts/channels', { schema: { body: ChannelForm } }, async (request, reply) => {
    const { body: typed } = request;
    try {
      const { secret } = await deps.alerts.addChannel(viewerOf(request).actor, {
        ...inputOf(typed),
        kind: typed.kind ?? '',
      });
      if (secret === null) return await reply.redirect('/alerts?saved=1#channels', 303);
      return await showAlerts(request, reply, secret);
    } catch (error) {
      const refused = { fault: faultText(error, ...faults), typed };
      return showChannel(deps, request, reply, { kind: typed.kind ?? 'email', refused });
    }
  });
  app.post(
    '/alerts/channels/:channelId',
    { schema: { params: ChannelParams, body: ChannelForm } },
    async (request, reply) => {
      const { body: typed } = request;
      const { channelId } = request.params;
      try {
        if (!(await deps.alerts.changeChannel(viewerOf(request).actor, channelId, inputOf(typed))))
          throw noChannel();
        return await reply.redirect('/alerts?saved=1#channels', 303);
      } catch (error) {
        if (error instanceof HttpError) throw error;
        const refused = { fault: faultText(error, ...faults), typed };
        return showChannel(deps, request, reply, { channelId, refused });
      }
    },
  );
  const actions: Record<string, (request: FastifyRequest, channelId: number) => Promise<boolean>> = {
    test: (request, id) => deps.alerts.sendTest(viewerOf(request).actor, id),
    enable: (request, id) => deps.alerts.setChannelEnabled(viewerOf(request).actor, id, true),
    disable: (request, id) => deps.alerts.setChannelEnabled(viewerOf(request).actor, id, false),
    delete: (request, id) => deps.alerts.deleteChannel(viewerOf(request).actor, id),
  };
  for (const [name, act] of Object.entries(actions)) {
    app.post(
      `/alerts/channels/:channelId/${name}`,
      { schema: { params: ChannelParams } },
      async (request, reply) => {
        await done(act(request, request.params.channelId), 'channel').catch((error: unknown) => {
          const message = faultText(error, 'alerts.test_limit');
          throw new HttpError(429, { code: 'test_limit', message }, { 'retry-after': '300' });
        });
        return reply.redirect('/alerts?saved=1#channels', 303);
      },
    );
  }
}

function inputOf(typed: TypedChannel): Omit<ChannelInput, 'kind'> {
  const after = (prefix: string) =>
    Object.keys(typed).flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
  return {
    name: typed.name ?? '',
    settings: Object.fromEntries(after('setting_').map((name) => [name, typed[`setting_${name}`]])),
    siteIds: after('site_').map(Number).filter(Number.isSafeInteger),
    kinds: after('kind_'),
    isCriticalOnly: typed.critical_only !== undefined,
    quietFrom: typed.quiet_from ?? '',
    quietTo: typed.quiet_to ?? '',
    quietZone: typed.quiet_zone ?? '',
  };
}

function noChannel(): HttpError {
  return new HttpError(404, { code: 'not_found', message: 'This channel no longer exists.' });
}

async function showChannel(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  shown: {
    kind?: string;
    channelId?: number;
    refused?: { fault: string; typed: TypedChannel };
  },
): Promise<FastifyReply> {
  const { channelId, refused } = shown;
  if (!viewerOf(request).canChange)
    throw new HttpError(403, { code: 'read_only', message: 'Your role is read-only.' });
  const channels = channelId === undefined ? [] : await deps.alerts.listChannels();
  const channel = channels.find(({ id }) => id === channelId) ?? null;
  if (channelId !== undefined && !channel) throw noChannel();
  const kind = channel?.kind ?? shown.kind ?? '';
  if (!channelKindOf(kind))
    throw new HttpError(404, { code: 'not_found', message: 'No such kind of channel.' });
  return sendConsolePage(
    request,
    reply,
    { title: channel?.name ?? 'New channel', status: refused ? 422 : 200 },
    channelPage({
      ...{ kind: kind as ChannelKindName, channel, hasMail: deps.alerts.hasMail, viewer: viewerOf(request) },
      ...(refused ? { refused } : {}),
    }),
  );
}
