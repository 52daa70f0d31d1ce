/** `/client/palette`: what the command palette of the portal finds, within what the person owns. */
import { Type } from 'typebox';
import type { Servers } from '#operations/servers/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { PALETTE_HITS_MAX, PALETTE_TEXT_MAX, sendPaletteHits } from '#service-kit/pages/index.ts';

export interface PaletteDeps {
  servers: Pick<Servers, 'search'>;
}

const Query = Type.Object({ q: Type.Optional(Type.String({ maxLength: PALETTE_TEXT_MAX })) });

/** What customers can do from everywhere. */
export const portalActions = [
  { label: 'Deploy a server', href: '/client/servers/new' },
  { label: 'Create an API key', href: '/client/developer/#create' },
  { label: 'Create a private network', href: '/client/networks/#create' },
  { label: 'Add a webhook endpoint', href: '/client/developer/webhooks/' },
  { label: 'Change password and second factor', href: '/client/account/' },
] as const;

export function registerPalette(app: App, deps: PaletteDeps): void {
  app.get('/palette', { schema: { querystring: Query } }, async (request, reply) => {
    const { actor } = request.visitor!;
    const found = await deps.servers.search(actor, request.query.q ?? '', PALETTE_HITS_MAX);
    const several = actor.tenantIds.length > 1;
    return sendPaletteHits(reply, [
      ...found.addresses.map((hit) => ({
        kind: 'Addresses',
        text: hit.address,
        detail: hit.serverName,
        href: `/client/servers/${hit.serverId}`,
      })),
      ...found.servers.map((hit) => ({
        kind: 'Servers',
        text: hit.serverName,
        detail: several ? `${hit.status}, ${hit.tenantName}` : hit.status,
        href: `/client/servers/${hit.serverId}`,
      })),
    ]);
  });
}
