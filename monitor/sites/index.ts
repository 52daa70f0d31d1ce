/**
 * Sites: locations with sensors, their local prefixes, and their clusters of operations.
 *
 * Local prefixes only decide which end of a connection is local (NET-2.2.8). A cluster belongs to a site only by an
 * explicit mapping (NET-2.3).
 */

import { CodedError } from '#common/errors/index.ts';
import { formatPrefix, parsePrefix } from '#common/ip/index.ts';
import { oneLine } from '#common/text/index.ts';
import { type Actor, requireOperator } from '#monitor/operators/index.ts';
import { changedMembers, record, recorded } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import * as store from './store.ts';

export { type ClusterMapping, findSite, listClusters, lockSite, type Site } from './store.ts';

export type Sites = ReturnType<typeof createSites>;

export function createSites(deps: {
  db: () => Queryable;
  /** Read-only connections for plans (NET-5.3); by default the same as for writes. */
  reader?: () => Queryable;
}) {
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
    /**
     * Throws `sites.invalid` for an invalid name and `sites.name_taken` for a used one. The pages of a simulated site say that
     * what they show was made up; that stays for good.
     */
    async create(
      actor: Actor,
      name: string,
      { isSimulated = false }: { isSimulated?: boolean } = {},
    ): Promise<store.Site> {
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
    /** Renames a site; null: no such site. Throws like `create`. */
    async rename(actor: Actor, id: number, name: string): Promise<store.Site | null> {
      requireOperator(actor);
      return changeSite(actor, 'site.rename', id, parseSiteName(name), store.renameSite);
    },
    list: () => store.listSites(deps.db()),
    find: (id: number) => store.findSite(deps.db(), id),
    /**
     * Replaces the local prefixes by their canonical texts, without duplicates. Throws `sites.invalid`. Null: no such
     * site.
     */
    async setLocalCidrs(actor: Actor, id: number, cidrs: readonly string[]): Promise<store.Site | null> {
      requireOperator(actor);
      return changeSite(actor, 'site.set_local_cidrs', id, parseLocalCidrs(cidrs), store.updateLocalCidrs);
    },
    /** Maps a cluster to a site; null removes the mapping. */
    async mapCluster(actor: Actor, clusterId: number, siteId: number | null) {
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
    /** Every mapping, by cluster. */
    listClusters: () => store.listClusters((deps.reader ?? deps.db)()),
  };
}

/** Local prefixes of one site (NET-8). */
export const localCidrsMax = 128;
const nameLengthMax = 80;

/** A site's name, trimmed. */
function parseSiteName(text: string): string {
  const name = oneLine(text);
  if (name.length === 0 || name.length > nameLengthMax) {
    throw new CodedError('sites.invalid', `A site's name has 1 to ${nameLengthMax} characters.`);
  }
  return name;
}

/** Canonical, sorted, distinct prefixes. The error lists every invalid text. */
function parseLocalCidrs(texts: readonly string[]): string[] {
  const faults: string[] = [];
  const found = new Set<string>();
  for (const text of texts) {
    const prefix = parsePrefix(text.trim());
    if (prefix) found.add(formatPrefix(prefix));
    else faults.push(text.trim());
  }
  if (faults.length > 0) {
    throw new CodedError(
      'sites.invalid',
      `Not a prefix: ${faults.slice(0, 5).join(', ')}. Write address/length with the host bits zero, such as 192.0.2.0/24 or 2001:db8::/48.`,
    );
  }
  if (found.size > localCidrsMax) {
    throw new CodedError(
      'sites.invalid',
      `A site has at most ${localCidrsMax} local prefixes, not ${found.size}.`,
    );
  }
  return [...found].sort();
}
