/** `/system`: the request for the state of the monitor itself. */
import type { Feeds } from '#monitor/feeds/index.ts';
import type { Health } from '#monitor/health/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendConsolePage } from '../frame.ts';
import { systemPage } from './system.page.ts';

export function registerSystem(app: App, deps: { health: Health; feeds: Pick<Feeds, 'all'> }): void {
  const feedWork = deps.feeds.all.map(({ feed }): [string, string] => [feed.loop, feed.purpose]);
  app.get('/system', async (request, reply) => {
    const content = systemPage(request, await deps.health.read(), feedWork);
    return sendConsolePage(request, reply, { title: 'System' }, content);
  });
}
