/** Assesses a page of servers, and tells what is new of them. */
import { type Lease, underLease } from '#service-kit/leases/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { endIgnores } from '../ignores/index.ts';
import type { AssessorDeps, FoundOfServer } from './assessor.ts';
import { assessmentRules, type BoundService, bindServices } from './bind-services.ts';
import { checkSoftware } from './check-software.ts';
import * as noted from './noted-store.ts';
import * as store from './server-store.ts';
import { ensureSoftware, listSoftware, outdateUses, type Software } from './software-store.ts';

/**
 * The evidence is read before it is compared, and what is written says which evidence it was: a result that arrives meanwhile has
 * the server visited again. All of the page is one transaction. Throws `LeaseLost`.
 */
export async function visitServers(deps: AssessorDeps, turn: Turn, servers: readonly store.DueServer[]) {
  const changed = servers.filter(({ isChanged }) => isChanged);
  const services = await bind(deps, turn, changed);
  await underLease(deps.db(), turn.lease, async (trx) => {
    await store.noteAssessed(trx, servers, assessmentRules);
    const lost = findLost(await store.listSevere(trx, changed), services);
    if (changed.length > 0) {
      await store.writeServices(trx, changed, services);
      await outdateUses(trx);
    }
    await endIgnores(trx, servers);
    await store.countServers(trx, servers);
    await tellOfNew(deps, trx, servers, lost);
  });
}

async function bind(deps: AssessorDeps, turn: Turn, servers: readonly store.DueServer[]) {
  if (servers.length === 0) return [];
  const evidence = await deps.scans.listEvidence(servers);
  const byServer = Map.groupBy(evidence, ({ clusterId, serverId }) => `${clusterId} ${serverId}`);
  const bound = [...byServer.values()].flatMap(bindServices);
  const named = new Map(bound.flatMap(({ software }) => (software ? [[nameOf(software), software]] : [])));
  await ensureSoftware(deps.db(), [...named.values()]);
  await checkSoftware(deps, turn);
  const known = await listSoftware(deps.db(), [...named.values()]);
  const byName = new Map(known.map((one) => [nameOf(one), one]));
  return bound.map((service) => toRow(service, byName));
}

const nameOf = ({ product, version }: { product: string; version: string }) => `${product} ${version}`;

function toRow(
  { software, method: _, confidence: __, cpe: ___, ...service }: BoundService,
  known: ReadonlyMap<string, Software>,
): store.ServiceRow {
  if (software === null) return { ...service, softwareId: null };
  const { id, isJudged } = known.get(nameOf(software))!;
  return { ...service, softwareId: id, reason: isJudged ? null : service.reason };
}

/** Servers of which severe services expired or can't be assessed any more. */
function findLost(before: readonly store.SevereService[], after: readonly store.ServiceRow[]): Set<string> {
  const placeOf = (one: store.ServerKey & Pick<store.ServiceRow, 'address' | 'transport' | 'port'>) =>
    `${keyOf(one)} ${one.address} ${one.transport}/${one.port}`;
  const unable = new Set(after.filter(({ reason }) => reason !== null).map(placeOf));
  return new Set(before.filter((one) => one.isExpired || unable.has(placeOf(one))).map(keyOf));
}

async function tellOfNew(
  { onChecked }: AssessorDeps,
  trx: Queryable,
  servers: readonly store.DueServer[],
  lost: ReadonlySet<string>,
): Promise<void> {
  const found = Map.groupBy(await noted.noteFindings(trx, servers), keyOf);
  const checked = (await noted.countSevere(trx, servers)).map(
    (server): FoundOfServer => ({
      ...server,
      hasLostSight: lost.has(keyOf(server)),
      found: found.get(keyOf(server)) ?? [],
    }),
  );
  await onChecked(trx, checked);
}

const keyOf = ({ clusterId, serverId }: store.ServerKey) => `${clusterId} ${serverId}`;

/** One run of the loop, and its lease. */
export interface Turn {
  lease: Lease;
  /** Throws `LeaseLost`. */
  renew(): Promise<void>;
  signal: AbortSignal;
}
