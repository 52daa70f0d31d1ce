/** `POST /sites/{id}/explore/views`: saves the view that the explorer shows, and removes one. */
import { Type } from 'typebox';
import { Id } from '#contracts/scalars.ts';
import type { SavedView } from '#monitor/saved-views/index.ts';
import { savedViewLinks, savedViewsSection, viewQueryOf } from '#service-kit/explorer/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import type { Content } from '#service-kit/pages/index.ts';
import { withQuery } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, notFound, SiteParams, siteOf } from '../frame.ts';
import type { Viewer } from '../guard.ts';
import { viewerOf } from '../guard.ts';
import type { ExploreView } from './explore-view.ts';

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

  const View = Type.Object({ ...SiteParams.properties, viewId: Id });
  app.post(
    '/sites/:siteId/explore/views/:viewId/remove',
    { schema: { params: View } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      if (!(await deps.savedViews.remove(viewerOf(request).actor, site.id, request.params.viewId)))
        throw notFound('This site has no such view.');
      return reply.redirect(`${viewHref(site.id, '')}?saved=1#views`, 303);
    },
  );
}

// Views of a site's explorer under a name: links to them, and what saves and removes them.

export interface SavedViewsPart {
  views: readonly SavedView[];
  viewer: Viewer;
}

const viewsPath = (siteId: number): string => `/sites/${siteId}/explore/views`;
const viewHref = (siteId: number, query: string): string =>
  `/sites/${siteId}/explore${query === '' ? '' : `?${query}`}`;

const queryOf = (view: ExploreView): string => viewQueryOf(view.url.split('?')[1] ?? '');

const hrefOf =
  ({ siteId }: ExploreView) =>
  (query: string) =>
    viewHref(siteId, query);

/** Above the filters; the one that is shown is marked. */
export const savedLinks = (view: ExploreView, { views }: SavedViewsPart): Content =>
  savedViewLinks(views, queryOf(view), hrefOf(view));

export function savedSection(view: ExploreView, { views, viewer }: SavedViewsPart): Content {
  return savedViewsSection({
    ...{ views, shown: queryOf(view), hrefOf: hrefOf(view), action: viewsPath(view.siteId) },
    ...{ canSave: viewer.canChange, csrfToken: viewer.csrfToken },
    description: 'Filters, range and pictures under a name, for everyone who sees this site.',
    removalText: () => 'It goes for everyone who sees this site. The traffic stays.',
  });
}
