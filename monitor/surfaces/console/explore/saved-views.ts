/** Views of a site's explorer under a name: links to them, and what saves and removes them. */
import type { SavedView } from '#monitor/saved-views/index.ts';
import { savedViewLinks, savedViewsSection, viewQueryOf } from '#service-kit/explorer/index.ts';
import type { Content } from '#service-kit/pages/index.ts';
import type { Viewer } from '../guard.ts';
import type { ExploreView } from './explore-view.ts';

export interface SavedViewsPart {
  views: readonly SavedView[];
  viewer: Viewer;
}

export const viewsPath = (siteId: number): string => `/sites/${siteId}/explore/views`;
export const viewHref = (siteId: number, query: string): string =>
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
