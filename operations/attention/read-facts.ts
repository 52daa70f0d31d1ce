/** The facts of attention items, from the features. */
import type { Actor } from '#operations/accounts/index.ts';
import type { Addresses } from '#operations/addresses/index.ts';
import type { AdminProjects } from '#operations/admin-projects/index.ts';
import type { Clusters } from '#operations/clusters/index.ts';
import type { FeedReceiver } from '#operations/feeds/index.ts';
import type { Guards } from '#operations/guards/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import type { ProtectIncidents } from '#operations/protect/index.ts';
import type { Servers } from '#operations/servers/index.ts';
import type { Webhooks } from '#operations/webhooks/index.ts';
import type { Limits } from '#service-kit/limits/index.ts';
import { judgeSystem, type System } from '#service-kit/system/index.ts';
import type { AttentionFacts, SilentMonitor } from './item.ts';

export interface ReadFactsDeps {
  addresses: Pick<Addresses, 'listPools'>;
  adminProjects: Pick<AdminProjects, 'list' | 'listTokens'>;
  clusters: Pick<Clusters, 'listClusters' | 'listNodes'>;
  guards: Pick<Guards, 'listActiveServers'>;
  limits: Pick<Limits, 'findProblem'>;
  payments: Pick<Payments, 'listReconciled'>;
  protectIncidents: Pick<ProtectIncidents, 'countOpen'>;
  receivers: readonly FeedReceiver[];
  servers: Pick<Servers, 'countByStatus' | 'listDrifts'>;
  system: Pick<System, 'read'>;
  webhooks: Pick<Webhooks, 'readQueueHealth'>;
}

const chargesMax = 100;
/** A monitor calls every few seconds; the time of a call is noted once a minute. */
const silentSeconds = 300;

/** Facts that take no look at every customer and finding, which only the overview counts. */
export type UrgentFacts = Omit<AttentionFacts, 'customers' | 'criticalFindings'>;

/** Staff only. `watchingSeconds`: see `judgeLoop`. */
export async function readAttentionFacts(
  deps: ReadFactsDeps,
  actor: Actor,
  nowMs: number,
  watchingSeconds = Number.POSITIVE_INFINITY,
): Promise<UrgentFacts> {
  const [
    servers,
    drifts,
    clusters,
    nodes,
    pools,
    charges,
    webhooks,
    attacks,
    spoofers,
    state,
    silentMonitors,
  ] = await Promise.all([
    deps.servers.countByStatus(actor, null),
    deps.servers.listDrifts(actor, null),
    deps.clusters.listClusters(),
    deps.clusters.listNodes(actor, null),
    deps.addresses.listPools(actor, null),
    deps.payments.listReconciled(actor, chargesMax),
    deps.webhooks.readQueueHealth(actor),
    deps.protectIncidents.countOpen(actor),
    deps.guards.listActiveServers(actor),
    deps.system.read(),
    findSilentMonitors(deps, actor, nowMs),
  ]);
  const waiting = charges.filter((charge) => charge.state === 'unconfirmed');
  return {
    ...{ servers, drifts, clusters, nodes, pools, webhooks, attacks, spoofers, silentMonitors },
    waitingCharges: waiting.length,
    oldestChargeMs: nowMs - (waiting[0]?.createdAt.getTime() ?? nowMs),
    limitsProblem: deps.limits.findProblem(),
    system: judgeSystem(state, watchingSeconds),
  };
}

async function findSilentMonitors(
  { adminProjects, receivers }: ReadFactsDeps,
  actor: Actor,
  nowMs: number,
): Promise<SilentMonitor[]> {
  const ofFeeds = new Set(receivers.map(({ contract }) => contract.permission));
  const projects = (await adminProjects.list(actor)).filter(({ permissions }) =>
    permissions.some((name) => ofFeeds.has(name)),
  );
  const found = await Promise.all(
    projects.map(async ({ id, name }) => {
      const tokens = await adminProjects.listTokens(actor, id);
      const used = tokens.flatMap(({ isActive, lastUsedAt }) =>
        isActive && lastUsedAt ? lastUsedAt.getTime() : [],
      );
      return { project: { id, name }, seconds: (nowMs - Math.max(...used)) / 1000 };
    }),
  );
  return found.filter(({ seconds }) => Number.isFinite(seconds) && seconds > silentSeconds);
}
