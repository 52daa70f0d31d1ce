/** `/console/palette`: what the command palette of the operators' console finds: customers, servers, addresses. */

import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import { PALETTE_HITS_MAX, PALETTE_TEXT_MAX, sendPaletteHits } from '#service-kit/pages/index.ts';

const Query = Type.Object({ q: Type.Optional(Type.String({ maxLength: PALETTE_TEXT_MAX })) });

/** What operators can do from everywhere; support only reads. */
export const consoleActions = [
  { label: 'New customer', href: '/console/customers/new' },
  { label: 'New cluster', href: '/console/clusters/new' },
] as const;

export function registerPalette(app: App, deps: Features): void {
  app.get('/palette', { schema: { querystring: Query } }, async (request, reply) => {
    const { actor } = request.staff!;
    const text = request.query.q ?? '';
    const [found, tenants] = await Promise.all([
      deps.servers.search(actor, text, PALETTE_HITS_MAX),
      deps.accounts.searchTenants(actor, text, PALETTE_HITS_MAX),
    ]);
    return sendPaletteHits(reply, [
      ...found.addresses.map((hit) => ({
        kind: 'Addresses',
        text: hit.address,
        detail: `${hit.serverName}, ${hit.tenantName}`,
        href: `/console/servers/${hit.serverId}`,
      })),
      ...found.servers.map((hit) => ({
        kind: 'Servers',
        text: hit.serverName,
        detail: `${hit.tenantName}, ${hit.status}`,
        href: `/console/servers/${hit.serverId}`,
      })),
      ...tenants.map((tenant) => ({
        kind: 'Customers',
        text: tenant.name,
        detail: tenant.organizationName === tenant.name ? `id ${tenant.id}` : tenant.organizationName,
        href: `/console/customers/${tenant.id}`,
      })),
    ]);
  });
}
