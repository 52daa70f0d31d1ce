/** What happened to one server, as flags on the time axis of its charts; each leads to the page that says more. */
import { canonicalAddress } from '#common/ip/index.ts';
import type { ServerHistory } from '#operations/server-history/index.ts';
import type { ServerEvent } from '#operations/views/event-store.ts';
import type { Server } from '#operations/views/server-store.ts';
import { type Flags, readFlags } from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { incidentHref } from '../protect/attacks.ts';

export interface ServerFlagsAsk {
  visitor: Visitor;
  server: Pick<Server, 'id' | 'name'>;
  range: { fromMs: number; toMs: number };
  /** Attacks and scans of this address alone; null: of all. */
  address: string | null;
}

export function readServerFlags(
  { serverHistory: history }: { serverHistory: ServerHistory },
  { visitor, server, range, address }: ServerFlagsAsk,
): Promise<Flags> {
  const canonical = address === null ? null : canonicalAddress(address);
  return readFlags(
    { history, actor: visitor.actor, hrefOf: eventHref },
    {
      servers: [{ ...server, isDestroyed: false }],
      addresses: canonical === null ? [] : [{ isNot: false, values: [canonical] }],
      range,
    },
  );
}

/** The tab of a server that has what was changed, by the first part of its operation. */
const tabs: Readonly<Record<string, string>> = {
  firewall: '/firewall',
  network: '/networks',
  protect: '/protect#settings',
};

/** Where a flag leads in the portal. Only requested scans whose result is kept have a page. */
export function eventHref({ kind, serverId, name, id }: ServerEvent): string | undefined {
  const path = `/client/servers/${serverId}`;
  switch (kind) {
    case 'attack':
      return id === null ? undefined : incidentHref(serverId, id);
    case 'scan':
      return id === null ? undefined : `${path}/protect/scans/${id}`;
    case 'change':
      return `${path}${tabs[name.split('.')[0]!] ?? ''}`;
    default:
      return path;
  }
}
