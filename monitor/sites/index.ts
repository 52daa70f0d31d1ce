/**
 * Sites: locations with sensors, their local prefixes, and their clusters of operations.
 *
 * Local prefixes only decide which end of a connection is local (NET-2.2.8). A cluster belongs to a site only by an
 * explicit mapping (NET-2.3).
 */
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { changedMembers, record, recorded } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import { parseLocalCidrs, parseSiteName } from './site.ts';
import * as store from './store.ts';

export { localCidrsMax } from './site.ts';
export { type ClusterMapping, findSite, listClusters, lockSite, type Site } from './store.ts';

export interface Sites {
  /**
   * Throws `sites.invalid` for an invalid name and `sites.name_taken` for a used one. The pages of a simulated site say that
   * what they show was made up; that stays for good.
   */
  create(actor: Actor, name: string, options?: { isSimulated?: boolean }): Promise<store.Site>;
  /** Renames a site; null: no such site. Throws like `create`. */
  rename(actor: Actor, id: number, name: string): Promise<store.Site | null>;
  list(): Promise<store.Site[]>;
  find(id: number): Promise<store.Site | null>;
  /**
   * Replaces the local prefixes by their canonical texts, without duplicates. Throws `sites.invalid`. Null: no such
   * site.
   */
  setLocalCidrs(actor: Actor, id: number, cidrs: readonly string[]): Promise<store.Site | null>;
  /** Maps a cluster to a site; null removes the mapping. */
  mapCluster(actor: Actor, clusterId: number, siteId: number | null): Promise<void>;
  /** Every mapping, by cluster. */
  listClusters(): Promise<store.ClusterMapping[]>;
}

export interface SitesDeps {
  db: () => Queryable;
  /** Read-only connections for plans (NET-5.3); by default the same as for writes. */
  reader?: () => Queryable;
}

export function createSites(deps: SitesDeps): Sites {
  const changeSite = <Value>(
    actor: Actor,
    operation: string,
    id: number,
    value: Value,
    update: (trx: Queryable, id: number, value: Value) => Promise<store.Site | null>,
  ) =>
    inTransaction(deps.db(), async (trx) => {
      const before = await store.findSite(trx, id);
      const after = await update(trx, id, value);
      if (!before || !after) return null;
      const subject = { kind: 'site', id, name: after.name };
      await record(trx, actor, { operation, subject, ...changedMembers(before, after) });
      return after;
    });
  return {
    async create(actor, name, { isSimulated = false } = {}) {
      requireOperator(actor);
      const site = parseSiteName(name);
      return recorded(
        deps.db(),
        actor,
        (made) => ({
          operation: 'site.create',
          subject: { kind: 'site', id: made.id, name: made.name },
          ...(isSimulated && { after: { isSimulated } }),
        }),
        (trx) => store.insertSite(trx, site, isSimulated),
      );
    },
    async rename(actor, id, name) {
      requireOperator(actor);
      return changeSite(actor, 'site.rename', id, parseSiteName(name), store.renameSite);
    },
    list: () => store.listSites(deps.db()),
    find: (id) => store.findSite(deps.db(), id),
    async setLocalCidrs(actor, id, cidrs) {
      requireOperator(actor);
      return changeSite(actor, 'site.set_local_cidrs', id, parseLocalCidrs(cidrs), store.updateLocalCidrs);
    },
    async mapCluster(actor, clusterId, siteId) {
      requireOperator(actor);
      const entry = {
        operation: 'site.map_cluster',
        subject: { kind: 'cluster', id: clusterId },
        after: { siteId },
      };
      await recorded(deps.db(), actor, entry, (trx) =>
        siteId === null ? store.deleteCluster(trx, clusterId) : store.upsertCluster(trx, clusterId, siteId),
      );
    },
    listClusters: () => store.listClusters((deps.reader ?? deps.db)()),
  };
}
