/** The pages below the Traffic tab of a server. They keep range and address. */
import { type Html, tabs, withQuery } from '#service-kit/pages/index.ts';
import { trafficPath } from './traffic-url.ts';

const labels = { now: 'Now', applications: 'Applications', minutes: 'Minutes', usage: 'Usage' } as const;
export type TrafficTab = keyof typeof labels;

/** `url` is that of the page. */
export function trafficTabs(serverId: number, current: TrafficTab, url: string): Html {
  const path = trafficPath(serverId);
  const asked = new URLSearchParams(url.split('?')[1]);
  const kept = Object.fromEntries(
    ['range', 'from', 'to', 'address'].map((name) => [name, asked.get(name) ?? undefined]),
  );
  const pages = {
    now: withQuery(path, kept),
    applications: withQuery(path, { ...kept, by: 'application' }),
    minutes: withQuery(`${path}/minutes`, kept),
    usage: `${path}/usage`,
  };
  return tabs(
    'Pages of the traffic',
    Object.entries(labels).map(([name, label]) => ({
      ...{ label, href: pages[name as TrafficTab], current: name === current },
    })),
  );
}
