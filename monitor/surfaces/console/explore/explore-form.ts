/** The form of a site's explorer. */
import { type Dimension, queryBox } from '#monitor/explorer/index.ts';
import type { exploreForm } from '#service-kit/explorer/index.ts';
import type { ExploreView } from './explore-view.ts';

/** `serverNames`: by the value of a filter. */
export function formOf(
  groups: readonly Dimension[],
  { siteId }: ExploreView,
  serverNames: ReadonlyMap<string, string>,
): Parameters<typeof exploreForm>[1] {
  const path = `/sites/${siteId}/explore`;
  return {
    ...{ path, completePath: `${path}/complete`, box: { ...queryBox, groups } },
    example: 'app:github.com peer:198.51.100.0/24 port:443 -server:web-1',
    labelOf: (dimension, value) => (dimension === 'server' ? serverNames.get(value) : undefined) ?? value,
  };
}
