/** `POST /sites/{id}/explore/views`: saves the view that the explorer shows, and removes one. */
import { Type } from 'typebox';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { withQuery } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { viewHref } from './saved-views.ts';

export function registerSavedViews(app: App, deps: ConsoleDeps): void {
  const Body = Type.Object({
    name: Type.String({ maxLength: 200 }),
    query: Type.String({ maxLength: 20_000 }),
  });
  app.post(
    '/sites/:siteId/explore/views',
    { schema: { params: SiteParams, body: Body } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      try {
        const { query } = await deps.savedViews.save(viewerOf(request).actor, site.id, request.body);
        return reply.redirect(withQuery(viewHref(site.id, query), { saved: '1' }), 303);
      } catch (error) {
        const message = faultText(error, 'saved_views.invalid');
        throw new HttpError(422, { code: 'validation_failed', message });
      }
    },
  );

  const View = Type.Object({
    ...SiteParams.properties,
    viewId: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }),
  });
  app.post(
    '/sites/:siteId/explore/views/:viewId/remove',
    { schema: { params: View } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      if (!(await deps.savedViews.remove(viewerOf(request).actor, site.id, request.params.viewId)))
        throw new HttpError(404, { code: 'not_found', message: 'This site has no such view.' });
      return reply.redirect(`${viewHref(site.id, '')}?saved=1#views`, 303);
    },
  );
}
