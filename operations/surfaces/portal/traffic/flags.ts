/** What happened to a server, as flags on the time axis of its charts: each leads to the page that says more. */
import type { Actor, CustomerActor } from '#operations/accounts/index.ts';
import type { IncidentRow, ServerScan } from '#operations/protect/index.ts';
import type { Server } from '#operations/servers/index.ts';
import type { AuditTrail } from '#service-kit/audit/index.ts';
import { titleOfClass } from '../../parts/index.ts';
import { incidentHref } from '../protect/attacks.ts';

export interface Flag {
  timeMs: number;
  text: string;
  href?: string;
}

/** Changes of a server that its traffic may show, in words; others of the audit trail are left out. */
const words: Readonly<Record<string, { text: string; tab: string }>> = {
  'server.create': { text: 'Deployed', tab: '' },
  'server.start': { text: 'Started', tab: '' },
  'server.shutdown': { text: 'Shut down', tab: '' },
  'server.stop': { text: 'Powered off', tab: '' },
  'server.reboot': { text: 'Rebooted', tab: '' },
  'server.reset': { text: 'Reset', tab: '' },
  'firewall.switch': { text: 'Firewall switched on or off', tab: '/firewall' },
  'firewall.policies': { text: 'Firewall default action changed', tab: '/firewall' },
  'firewall.add': { text: 'Firewall rule added', tab: '/firewall' },
  'firewall.edit': { text: 'Firewall rule edited', tab: '/firewall' },
  'firewall.remove': { text: 'Firewall rule removed', tab: '/firewall' },
  'firewall.move': { text: 'Firewall rule moved', tab: '/firewall' },
  'network.attach_server': { text: 'Attached to a network', tab: '/networks' },
  'network.detach_server': { text: 'Detached from a network', tab: '/networks' },
  'protect.change_settings': { text: 'Protection settings changed', tab: '/protect#settings' },
};

/** Flags of one chart. */
const flagsMax = 50;

export async function readFlags(
  trail: AuditTrail,
  actor: Actor & CustomerActor,
  server: Server,
  range: { fromMs: number; toMs: number },
): Promise<Flag[]> {
  const path = `/client/servers/${server.id}`;
  const filter = {
    subject: `server ${server.id}`,
    fromMs: range.fromMs,
    toMs: range.toMs,
    scope: { organizationIds: [], tenantIds: [server.tenantId].filter((id) => actor.tenantIds.includes(id)) },
  };
  const { entries } = await trail.page(filter, {});
  return entries.slice(0, flagsMax).flatMap((entry) => {
    const said = words[entry.operation];
    return said ? [{ timeMs: entry.occurredAtMs, text: said.text, href: `${path}${said.tab}` }] : [];
  });
}

export function attackFlags(incidents: readonly IncidentRow[]): Flag[] {
  return incidents.map((each) => ({
    timeMs: each.startedAt.getTime(),
    text: `${each.isDrill ? 'Drill: ' : ''}${titleOfClass(each.class)}`,
    href: incidentHref(each.serverId, each.id),
  }));
}

/** Scans that ended in the range and have a page. */
export function scanFlags(
  serverId: number,
  scans: readonly ServerScan[],
  range: { fromMs: number; toMs: number },
): Flag[] {
  return scans.flatMap((scan) => {
    const timeMs = scan.finishedAt?.getTime() ?? 0;
    if (timeMs < range.fromMs || timeMs >= range.toMs || scan.kind !== 'manual') return [];
    return [{ timeMs, text: 'Port scan', href: `/client/servers/${serverId}/protect/scans/${scan.id}` }];
  });
}
