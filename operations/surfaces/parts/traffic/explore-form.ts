/** The form of the explorer, with what it says of the unit. */
import type { Exploration } from '#operations/protect/index.ts';
import { type Dimension, exploreForm } from '#service-kit/explorer/index.ts';
import { banner, type Content } from '#service-kit/pages/index.ts';
import type { ExplorerPlace } from './place.ts';
import type { TrafficView } from './traffic-view.ts';

export function trafficForm(place: ExplorerPlace, view: TrafficView, explored: Exploration): Content {
  const { path, box, example } = place;
  const labelOf = (dimension: Dimension, value: string) => nameIn(explored, dimension, value);
  return [
    exploreForm(view, { path, completePath: `${path}complete`, box, example, labelOf }),
    view.measureFault !== null && banner({ tone: 'info', title: 'Shown in bits', text: view.measureFault }),
  ];
}

/** The name of what is filtered by its number. */
function nameIn({ reached }: Exploration, dimension: Dimension, value: string): string {
  const id = /^(?:\d+\/)?(\d+)$/.exec(value)?.[1];
  if (id === undefined) return value;
  if (dimension === 'server') return reached.find((server) => String(server.id) === id)?.name ?? value;
  if (dimension !== 'customer') return value;
  return reached.find(({ tenantId }) => String(tenantId) === value)?.tenantName ?? value;
}
