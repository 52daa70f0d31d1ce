/** Views of the explorer under a name: links to them, and what saves and removes them. */
import type { SavedView } from '#operations/saved-views/index.ts';
import { savedViewLinks, savedViewsSection, viewQueryOf } from '#service-kit/explorer/index.ts';
import { badge, type Content, field } from '#service-kit/pages/index.ts';
import type { Explorer, ExplorerPlace } from './place.ts';
import type { TrafficView } from './traffic-view.ts';

const hrefOf = (place: ExplorerPlace) => (query: string) =>
  query === '' ? place.path : `${place.path}?${query}`;
const queryOf = (view: TrafficView) => viewQueryOf(view.url.split('?')[1] ?? '');

/** Above the filters; the one that is shown is marked. */
export const savedLinks = (place: ExplorerPlace, view: TrafficView, views: readonly SavedView[]): Content =>
  savedViewLinks(views, queryOf(view), hrefOf(place));

export function savedSection(
  place: ExplorerPlace,
  view: TrafficView,
  views: readonly SavedView[],
  who: Explorer,
): Content {
  const forWhom = who.canShare ? 'for you or for all operators' : 'for you alone';
  return savedViewsSection({
    ...{ views, shown: queryOf(view), hrefOf: hrefOf(place), action: `${place.path}views` },
    ...{ canSave: who.canSave, csrfToken: who.csrfToken },
    description: `Filters, range and pictures under a name, ${forWhom}.`,
    more:
      who.canShare &&
      field({
        ...{ kind: 'select', name: 'for', id: 'view-for', label: 'For', value: 'me' },
        options: [
          { value: 'me', label: 'Me' },
          { value: 'operators', label: 'All operators' },
        ],
      }),
    noteOf: (one) => one.isShared && [' ', badge('neutral', 'all operators')],
    removalText: (one) =>
      one.isShared ? 'It goes for all operators. The traffic stays.' : 'The view goes, the traffic stays.',
  });
}
