/** `/client/palette`: what the command palette of the portal finds, within what the person owns. */
import { Type } from 'typebox';
import type { CustomerActor } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import { PALETTE_HITS_MAX, PALETTE_TEXT_MAX, sendPaletteHits } from '#service-kit/pages/index.ts';

const Query = Type.Object({ q: Type.Optional(Type.String({ maxLength: PALETTE_TEXT_MAX })) });

/** What a customer can do from everywhere. Only owners create keys and webhook endpoints. */
export const portalActions = ({ ownedOrganizationIds }: CustomerActor) => [
  { label: 'Deploy a server', href: '/client/servers/new' },
  ...(ownedOrganizationIds.length === 0
    ? []
    : [
        { label: 'Create an API key', href: '/client/developer/#create' },
        { label: 'Add a webhook endpoint', href: '/client/developer/webhooks/' },
      ]),
  { label: 'Add an SSH key', href: '/client/developer/ssh-keys/#add' },
  { label: 'Keep an address', href: '/client/addresses/#keep' },
  { label: 'Create a private network', href: '/client/networks/#create' },
  { label: 'Change password and second factor', href: '/client/account/' },
];

export function registerPalette(app: App, deps: Features): void {
  app.get('/palette', { schema: { querystring: Query } }, async (request, reply) => {
    const { actor } = request.visitor!;
    const text = request.query.q ?? '';
    const found = await deps.servers.search(actor, text, PALETTE_HITS_MAX);
    const keys = await findKeys(deps, actor, text);
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
      ...keys.map((key) => ({
        kind: 'API keys',
        text: `Rotate ${key.name}`,
        detail: `svc_${key.keyId}_…`,
        href: `/client/developer/#rotate-${key.keyId}`,
      })),
    ]);
  });
}

/** The person's keys that they may rotate and have not, by beginnings of words: of the name, the key and "rotate API key". */
async function findKeys({ apiKeys }: Features, actor: CustomerActor, text: string) {
  const sought = wordsOf(text);
  if (sought.length === 0) return [];
  const keys = (await apiKeys.listKeys(actor)).filter((key) => {
    const isMine = key.personId === actor.personId && actor.ownedOrganizationIds.includes(key.organizationId);
    const words = wordsOf(`rotate api key ${key.name} ${key.keyId}`);
    const isFound = sought.every((one) => words.some((word) => word.startsWith(one)));
    return isMine && isFound && key.isActive && key.replacedBy === null;
  });
  return keys.slice(0, PALETTE_HITS_MAX);
}

function wordsOf(text: string): string[] {
  return text
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}
