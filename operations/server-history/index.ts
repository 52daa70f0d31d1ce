/**
 * What happened to servers, for the time axes of charts: what was asked of them, power states that no action led to, changed
 * firewalls, networks and protection settings, attacks, and port scans.
 *
 * A customer reads the servers of their workspaces, and attacks and scans only of those whose protection views are on (NET-1.6).
 * Of many servers attacks alone are read: a chart of thousands of servers has no room for each firewall rule.
 */
import { type Actor, forbidden } from '#operations/accounts/index.ts';
import {
  type AddressCondition,
  listAttackEvents,
  listServerEvents,
  listServersOfAddresses,
  type ServerEvent,
} from '#operations/views/event-store.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

/** Servers of which all kinds of events are told. */
export const toldServersMax = 10;
/** Events of one chart; the list under it has as many. */
export const toldEventsMax = 40;

/** Changes out of the audit trail that a server's traffic may show. */
export const toldChanges = [
  'firewall.replace',
  'firewall.switch',
  'firewall.policies',
  'firewall.add',
  'firewall.edit',
  'firewall.remove',
  'firewall.move',
  'network.attach_server',
  'network.detach_server',
  'protect.change_settings',
] as const;
export type ToldChange = (typeof toldChanges)[number];

export interface HistoryAsk {
  serverIds: readonly number[];
  /** These are all servers that the actor reaches. */
  isEveryServer?: boolean;
  /** Only servers that have such an address, and attacks on it and scans of it. */
  addresses?: readonly AddressCondition[];
  fromMs: number;
  toMs: number;
}

export interface History {
  /** Newest first. */
  events: ServerEvent[];
  /** These are more servers than all events are told of: the events are attacks. */
  isOfAttacks: boolean;
  /** Older events of the range are left out. */
  hasMore: boolean;
}

export type ServerHistory = ReturnType<typeof createServerHistory>;

export function createServerHistory(deps: { db: () => Queryable }) {
  return {
    /** Throws `accounts.forbidden`. */
    list: (actor: Actor, ask: HistoryAsk) => listHistory(deps.db(), actor, ask),
  };
}

async function listHistory(db: Queryable, actor: Actor, ask: HistoryAsk): Promise<History> {
  if (actor.kind === 'project') throw forbidden('Admin projects read no history of servers.');
  const { addresses = [], fromMs, toMs } = ask;
  const scope = actor.kind === 'customer' ? actor.tenantIds : 'all';
  const query = { scope, fromMs, toMs, addresses, limit: toldEventsMax + 1 } as const;
  const few = { ...query, limit: toldServersMax + 1 };
  const serverIds =
    addresses.length > 0 ? await listServersOfAddresses(db, ask.serverIds, few) : ask.serverIds;
  const isOfAttacks = serverIds.length > toldServersMax;
  const attacked = ask.isEveryServer ? null : ask.serverIds;
  const found = isOfAttacks
    ? await listAttackEvents(db, attacked, query)
    : serverIds.length === 0
      ? []
      : await listServerEvents(db, serverIds, query, toldChanges);
  return { events: found.slice(0, toldEventsMax), isOfAttacks, hasMore: found.length > toldEventsMax };
}
