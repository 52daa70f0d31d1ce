/** What needs attention: rules over what the features report, without words and without a database. */
import { isNearlyFull, type PoolUse } from '#operations/addresses/index.ts';
import { type Cluster, isAway, type Node } from '#operations/clusters/index.ts';
import { isUnconfirmedTooLong } from '#operations/payments/index.ts';
import type { Drift } from '#operations/servers/index.ts';
import type { QueueHealth } from '#operations/views/delivery-store.ts';
import type { ServerStatus } from '#operations/views/server-store.ts';
import { isQueueLate } from '#operations/webhooks/index.ts';
import type { SystemSubject } from '#service-kit/system/index.ts';

/** What the rules read. */
export interface AttentionFacts {
  servers: ReadonlyMap<ServerStatus, number>;
  clusters: readonly Cluster[];
  nodes: readonly Node[];
  pools: readonly PoolUse[];
  /** Differences between nodes and what is sold. */
  drifts: readonly Pick<Drift, 'nodeId'>[];
  customers: { inDebt: number };
  waitingCharges: number;
  /** The age of the oldest of them. */
  oldestChargeMs: number;
  webhooks: QueueHealth;
  /** Attacks that go on, and the servers that they are on or from. */
  attacks: { attacks: number; servers: number; stale: number };
  /** Ids of servers that send much spoofed traffic, which is dropped. */
  spoofers: readonly number[];
  /** Why limits that should be shared are counted by this process alone; null when all is well. */
  limitsProblem: string | null;
  /** Active potential vulnerabilities of severity critical. */
  criticalFindings: number;
  /** Disks and loops of operations itself. */
  system: readonly SystemSubject[];
  /** Projects that deliver feeds, have called, and do so no more. */
  silentMonitors: readonly SilentMonitor[];
}

export interface SilentMonitor {
  project: { id: number; name: string };
  /** Since its last call. */
  seconds: number;
}

/** `now`: customers are affected. `soon`: they will be. */
export type AttentionItem = { urgency: 'now' | 'soon' } & (
  | { kind: 'servers_failed'; count: number }
  | { kind: 'nodes_away'; nodes: readonly Node[] }
  | { kind: 'no_open_node'; clusters: readonly Cluster[] }
  | { kind: 'no_addresses'; clusters: readonly Cluster[] }
  | { kind: 'pool_nearly_full'; pool: PoolUse }
  | { kind: 'drift'; node: Node; count: number }
  | { kind: 'charges_unconfirmed'; count: number; oldestMs: number }
  | { kind: 'customers_in_debt'; count: number }
  | { kind: 'findings_critical'; count: number }
  | { kind: 'webhooks_late'; seconds: number }
  | { kind: 'attacks'; count: number; servers: number }
  | { kind: 'attacks_stale'; count: number }
  | { kind: 'spoofing'; servers: readonly number[] }
  | { kind: 'system'; subject: SystemSubject }
  | ({ kind: 'monitor_silent' } & SilentMonitor)
  | { kind: 'limits_apart'; why: string }
);

/** More nodes than these are one item: then it is the way to them that is broken. */
const awayMax = 3;

/** What `UrgentFacts` leave out. */
export const notCounted = { customers: { inDebt: 0 }, criticalFindings: 0 } as const;

/** The most urgent first. */
export function findAttentionItems(facts: AttentionFacts, nowMs: number): AttentionItem[] {
  const found = [
    ...ofAttacks(facts),
    ...ofServers(facts),
    ...ofNodes(facts, nowMs),
    ...ofMoney(facts),
    ...ofFindings(facts),
    ...ofSpoofing(facts),
    ...ofDelivery(facts),
    ...ofSystem(facts),
  ];
  return found.sort((a, b) => Number(b.urgency === 'now') - Number(a.urgency === 'now'));
}

function ofAttacks({ attacks: { attacks, servers, stale } }: AttentionFacts): AttentionItem[] {
  return [
    ...(attacks === 0
      ? []
      : [{ kind: 'attacks' as const, urgency: 'now' as const, count: attacks, servers }]),
    ...(stale === 0 ? [] : [{ kind: 'attacks_stale' as const, urgency: 'now' as const, count: stale }]),
  ];
}

function ofServers({ servers }: AttentionFacts): AttentionItem[] {
  const count = servers.get('failed') ?? 0;
  return count === 0 ? [] : [{ kind: 'servers_failed', urgency: 'now', count }];
}

function ofNodes({ clusters, nodes, pools, drifts }: AttentionFacts, nowMs: number): AttentionItem[] {
  const items: AttentionItem[] = [];
  const away = nodes.filter((node) => isAway(node, nowMs));
  const groups = away.length > awayMax ? [away] : away.map((node) => [node]);
  for (const group of groups) items.push({ kind: 'nodes_away', urgency: 'now', nodes: group });
  const closed = clusters.filter(
    (cluster) => !nodes.some((node) => node.clusterId === cluster.id && node.isOpen),
  );
  // Where there is none at all, the first steps say so.
  if (nodes.length > 0 && closed.length > 0)
    items.push({ kind: 'no_open_node', urgency: 'soon', clusters: closed });
  const bare = clusters.filter((cluster) => !pools.some((pool) => pool.clusterId === cluster.id));
  if (pools.length > 0 && bare.length > 0)
    items.push({ kind: 'no_addresses', urgency: 'soon', clusters: bare });
  for (const pool of pools.filter(isNearlyFull))
    items.push({ kind: 'pool_nearly_full', urgency: 'soon', pool });
  for (const node of nodes) {
    const count = drifts.filter((drift) => drift.nodeId === node.id).length;
    if (count > 0) items.push({ kind: 'drift', urgency: 'soon', node, count });
  }
  return items;
}

function ofMoney({ waitingCharges, oldestChargeMs, customers }: AttentionFacts): AttentionItem[] {
  const items: AttentionItem[] = [];
  if (waitingCharges > 0)
    items.push({
      kind: 'charges_unconfirmed',
      urgency: isUnconfirmedTooLong(oldestChargeMs) ? 'now' : 'soon',
      count: waitingCharges,
      oldestMs: oldestChargeMs,
    });
  if (customers.inDebt > 0)
    items.push({ kind: 'customers_in_debt', urgency: 'soon', count: customers.inDebt });
  return items;
}

function ofFindings({ criticalFindings: count }: AttentionFacts): AttentionItem[] {
  return count === 0 ? [] : [{ kind: 'findings_critical', urgency: 'soon', count }];
}

function ofSpoofing({ spoofers: servers }: AttentionFacts): AttentionItem[] {
  return servers.length === 0 ? [] : [{ kind: 'spoofing', urgency: 'soon', servers }];
}

function ofDelivery({ webhooks }: AttentionFacts): AttentionItem[] {
  if (!isQueueLate(webhooks)) return [];
  return [{ kind: 'webhooks_late', urgency: 'now', seconds: webhooks.oldestSeconds }];
}

function ofSystem({ system, silentMonitors, limitsProblem }: AttentionFacts): AttentionItem[] {
  return [
    ...system
      .filter(({ verdict }) => verdict === 'bad')
      .map((subject) => ({ kind: 'system' as const, urgency: 'now' as const, subject })),
    ...silentMonitors.map((silent) => ({
      ...silent,
      ...{ kind: 'monitor_silent' as const, urgency: 'now' as const },
    })),
    ...(limitsProblem === null
      ? []
      : [{ kind: 'limits_apart' as const, urgency: 'soon' as const, why: limitsProblem }]),
  ];
}
