import type { Features } from '#operations/features.ts';
import { type DemoAttack, registerDemoAttack } from '#service-kit/demo/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';

const shownMax = 20;

/** `/client/demo/attack` of a demo: one's own servers, but for those of the hypervisor that does not exist. */
export function registerAttack(
  app: App,
  { servers, attack, settings }: Pick<Features, 'servers' | 'settings'> & { attack: DemoAttack },
): void {
  const { node: simulated } = JSON.parse(settings.demoSimulatedSite ?? '{}') as { node?: string };
  registerDemoAttack(app, {
    ...{ attack, path: '/demo/attack', href: attackHref },
    async targetsOf({ visitor }) {
      const filter = { order: 'oldest', limit: shownMax, statuses: ['running'] } as const;
      const found = await servers.listServers(visitor!.actor, null, filter);
      return found.flatMap(({ id, name, node, addresses }) =>
        (node === simulated ? [] : addresses.slice(0, 1)).map(({ address }) => ({
          address,
          name,
          href: `/client/servers/${id}/protect`,
        })),
      );
    },
    csrfTokenOf: ({ visitor }) => visitor!.csrfToken,
    send({ visitor }, reply, content, status) {
      const breadcrumb = [{ label: 'Servers', href: '/client/' }, { label: 'Attack a server' }];
      const frame = { visitor: visitor!, title: 'Attack a server', current: 'servers', breadcrumb } as const;
      return sendPage(reply, portalFrame({ ...frame, isNarrow: true }, content), status);
    },
  });
}

export const attackHref = '/client/demo/attack';
