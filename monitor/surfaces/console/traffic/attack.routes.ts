import { type DemoAttack, registerDemoAttack } from '#service-kit/demo/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { viewerOf } from '../guard.ts';

const shownMax = 20;
export const attackPath = '/demo/attack';

/** `/demo/attack` of a demo: the servers of its hypervisor. */
export function registerAttack(app: App, { inventory, demoPlace }: ConsoleDeps, attack: DemoAttack): void {
  registerDemoAttack(app, {
    ...{ attack, path: attackPath, href: attackPath },
    async targetsOf(request) {
      const site = viewerOf(request).sites.find(({ isSimulated }) => !isSimulated);
      if (!site || !demoPlace?.node) return [];
      const servers = await inventory.listNodeServers([demoPlace.clusterId], demoPlace.node, shownMax);
      return servers.flatMap(({ name, addresses }) =>
        addresses
          .slice(0, 1)
          .map((address) => ({ address, name, href: `/sites/${site.id}/live?address=${address}` })),
      );
    },
    csrfTokenOf(request) {
      const { canChange, csrfToken } = viewerOf(request);
      return canChange ? csrfToken : null;
    },
    send: (_request, reply, content, status) =>
      sendConsolePage(reply, { title: 'Attack a server', isNarrow: true, status }, content),
  });
}
