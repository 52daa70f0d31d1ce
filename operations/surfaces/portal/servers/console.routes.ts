/** `/client/servers/{id}/console`: the screen or the terminal of a server. Each time it is opened with a ticket of its own. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { type ConsoleKind, consoleKinds } from '#contracts/capabilities.ts';
import type { ConsoleTicket } from '#operations/consoles/index.ts';
import type { Features } from '#operations/features.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  assetUrl,
  banner,
  type Html,
  html,
  inlineImagePolicy,
  pageHeader,
  sendPage,
} from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { Id, type Visitor } from '../guard.ts';
import { refusalOf } from '../networks/network-frame.ts';
import { findServerOf, serverFrame } from './server-frame.ts';

const OpenForm = Type.Object({ kind: Type.Optional(Type.Enum([...consoleKinds])) });

export function registerConsole(app: App, { servers, consoles }: Features): void {
  const path = '/servers/:id/console';
  const find = async (request: FastifyRequest<{ Params: { id: string } }>): Promise<ConsoleOf> => {
    const of = await findServerOf(servers, request);
    const kinds = await consoles.kindsOf(of.server);
    if (kinds.length === 0) throw noSuchPage();
    return { ...of, kinds };
  };
  app.get(path, { schema: { params: Id } }, async (request, reply) =>
    sendPage(reply, consolePage(await find(request), {})),
  );
  app.post(path, { schema: { params: Id, body: OpenForm } }, async (request, reply) => {
    const of = await find(request);
    const { actor, sessionId } = of.visitor;
    const { kind = null } = request.body;
    let ticket: ConsoleTicket | undefined;
    const fault = await refusalOf(async () => {
      ticket = await consoles.createTicket(actor, null, of.server.id, { sessionId, kind });
    });
    if (fault !== null) return sendPage(reply, consolePage(of, { fault }), 409);
    // Screens come as images in the text of the page.
    return sendPage(reply, consolePage(of, { ticket }), 200, inlineImagePolicy);
  });
}

interface ConsoleOf {
  visitor: Visitor;
  server: Server;
  /** What its console can speak, the usual one first. */
  kinds: readonly ConsoleKind[];
}

interface ConsoleState {
  ticket?: ConsoleTicket | undefined;
  fault?: string;
}

function consolePage(of: ConsoleOf, { ticket, fault }: ConsoleState): Html {
  const { visitor, server, kinds } = of;
  const buttons = kinds.map((kind) => {
    const other = kinds.length === 1 ? 'Open the console' : kindWords[kind];
    const label = ticket?.kind === kind ? 'Connect again' : other;
    const action = `/client/servers/${server.id}/console`;
    return actionButton({ action, csrfToken: visitor.csrfToken, label, fields: { kind } });
  });
  const text =
    ticket?.kind === 'text'
      ? `The terminal of ${server.name}: what its serial port says and takes.`
      : `Screen and keyboard of ${server.name}, as if you sat in front of it.`;
  return serverFrame(
    { visitor, server, tab: 'overview', part: 'Console' },
    pageHeader({
      title: 'Console',
      state: { tone: 'info', text: `${text} It works without a network in the server.` },
      actions: buttons,
    }),
    [
      fault !== undefined && banner({ tone: 'bad', title: 'The console was not opened', text: fault }),
      ticket !== undefined && screen(ticket, server),
    ],
  );
}

const kindWords: Record<ConsoleKind, string> = { vnc: 'Open the screen', text: 'Open the terminal' };

function screen({ path, kind }: ConsoleTicket, server: Server): Html {
  const key = html`<button type="button" class="button" data-console-keys hidden>Ctrl+Alt+Del</button>`;
  return html`<link rel="stylesheet" href="${assetUrl('console.css')}"><div class="console" data-console="${path}" data-kind="${kind}"><p class="console-line"><span role="status">Connecting to ${server.name} …</span> ${kind === 'vnc' && key}</p><div class="console-screen" tabindex="0" role="application" aria-label="Console of ${server.name}"></div></div><script type="module" src="${assetUrl('console.js')}"></script>`;
}
