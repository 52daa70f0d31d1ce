/** `/client/servers/{id}/console`: the screen or the terminal of a server. Each time it is opened with a ticket of its own. */
import { Type } from 'typebox';
import type { ConsoleTicket } from '#operations/consoles/index.ts';
import type { Features } from '#operations/features.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  assetUrl,
  banner,
  type Content,
  type Html,
  html,
  inlineImagePolicy,
  pageHeader,
  sendPage,
} from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { faultOf } from './server.routes.ts';
import { findServerOf, serverFrame } from './server-frame.ts';

const Id = Type.Object({ id: Type.String() });

export function registerConsole(app: App, { servers, consoles }: Features): void {
  const path = '/servers/:id/console';
  app.get(path, { schema: { params: Id } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    if (!servers.capabilitiesOf(of.server).includes('console')) throw noSuchPage();
    return sendPage(reply, consolePage(of, {}));
  });
  app.post(path, { schema: { params: Id } }, async (request, reply) => {
    const of = await findServerOf(servers, request);
    const { actor, sessionId } = of.visitor;
    let ticket: ConsoleTicket | undefined;
    const fault = await faultOf(async () => {
      ticket = await consoles.createTicket(actor, null, of.server.id, sessionId);
    });
    if (fault !== null) return sendPage(reply, consolePage(of, { fault }), 409);
    // Screens come as images in the text of the page.
    return sendPage(reply, consolePage(of, { ticket }), 200, inlineImagePolicy);
  });
}

interface ConsoleState {
  ticket?: ConsoleTicket | undefined;
  fault?: string;
}

function consolePage(of: { visitor: Visitor; server: Server }, { ticket, fault }: ConsoleState): Html {
  const { visitor, server } = of;
  const open = actionButton({
    action: `/client/servers/${server.id}/console`,
    csrfToken: visitor.csrfToken,
    label: ticket === undefined ? 'Open the console' : 'Connect again',
  });
  return serverFrame(
    { visitor, server, tab: 'overview', part: 'Console' },
    pageHeader({ title: 'Console', state: { tone: 'info', text: stateOf(server) }, actions: open }),
    [
      fault !== undefined && banner({ tone: 'bad', title: 'The console was not opened', text: fault }),
      ticket !== undefined && screen(ticket, server),
    ],
  );
}

const stateOf = (server: Server): Content =>
  `Screen and keyboard of ${server.name}, as if you sat in front of it. It works without a network in the server.`;

function screen({ path, kind }: ConsoleTicket, server: Server): Html {
  const key = html`<button type="button" class="button" data-console-keys hidden>Ctrl+Alt+Del</button>`;
  return html`<link rel="stylesheet" href="${assetUrl('console.css')}"><div class="console" data-console="${path}" data-kind="${kind}"><p class="console-line"><span role="status">Connecting to ${server.name} …</span> ${kind === 'vnc' && key}</p><div class="console-screen" tabindex="0" role="application" aria-label="Console of ${server.name}"></div></div><script type="module" src="${assetUrl('console.js')}"></script>`;
}
