/** `/sites/{id}/read-tokens`: tokens with which programs read the traffic of a site. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { pathOf, readTokensPage, type ShownToken } from './read-tokens.page.ts';

export function registerReadTokens(app: App, deps: ConsoleDeps): void {
  const Query = Type.Object({ saved: Type.Optional(Type.String()) });
  app.get(
    '/sites/:siteId/read-tokens',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      return show(deps, request, reply, site, {}, request.query.saved !== undefined);
    },
  );

  const Body = Type.Object({ name: Type.String({ maxLength: 200 }), days: Type.String({ maxLength: 20 }) });
  app.post(
    '/sites/:siteId/read-tokens',
    { schema: { params: SiteParams, body: Body } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      try {
        const made = await deps.readTokens.create(viewerOf(request).actor, site.id, request.body);
        // Rendered here instead of a redirect: only this answer contains the token.
        return await show(deps, request, reply, site, { made });
      } catch (error) {
        const fault = faultText(error, 'read_tokens.invalid');
        return show(deps, request, reply, site, { refused: { ...request.body, fault } });
      }
    },
  );

  const Token = Type.Object({
    ...SiteParams.properties,
    tokenId: Type.String({ pattern: '^[a-z0-9]{16}$' }),
  });
  app.post(
    '/sites/:siteId/read-tokens/:tokenId/revoke',
    { schema: { params: Token } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      if (!(await deps.readTokens.revoke(viewerOf(request).actor, site.id, request.params.tokenId)))
        throw new HttpError(404, { code: 'not_found', message: 'This site has no such token.' });
      return reply.redirect(`${pathOf(site)}?saved=1`, 303);
    },
  );
}

async function show(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  site: Site,
  shown: ShownToken,
  isSaved = false,
): Promise<FastifyReply> {
  const tokens = await deps.readTokens.list(site.id);
  const baseUrl = deps.monitorUrl() ?? `${request.protocol}://${request.host}`;
  const content = readTokensPage({ site, tokens, shown, viewer: viewerOf(request), baseUrl, request });
  return sendConsolePage(
    request,
    reply,
    {
      title: 'Read tokens',
      site: { site, page: 'settings' },
      status: shown.refused ? 422 : 200,
      ...(isSaved && { toast: toast('good', 'Saved.') }),
    },
    content,
  );
}
