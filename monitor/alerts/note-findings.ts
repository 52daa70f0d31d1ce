/**
 * Alerts of new potential vulnerabilities, one for each server and check (NET-2.6).
 *
 * A finding is told once for a server, port and software, however often it is compared; the feature that stores the check
 * remembers that. An alert stays open while the server has active findings of that severity; what is new then opens another in
 * its place, so that it is notified too. Findings that come back after the alert has ended open one again. It has recovered only
 * where the findings are gone: where their evidence has expired, or says too little now, it ends as removed. Of many servers at once, ten are notified and
 * the rest is listed.
 */
import type { EventInput } from '#monitor/events/index.ts';
import { nameServers } from '#monitor/views/address-store.ts';
import { type FoundOfServer, listActiveFindings } from '#monitor/vulnerabilities/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Subject } from './episode.ts';
import { enqueueOpened, enqueueResolved } from './outbox-store.ts';
import { findOpenBySubject, insertEpisode, resolveEpisode } from './store.ts';

const kind = 'findings_new';
/** Servers of one page of checks that are notified one by one. */
const notifiedMax = 10;
/** CVEs that an event names. */
const namedMax = 20;

interface Events {
  record(trx: Queryable, event: EventInput): Promise<void>;
}

/** Brings alerts up to date with checks, in their transaction; of findings of these severities. */
export function createFindingAlerts(severe: readonly ('high' | 'critical')[], events: Events) {
  return async (trx: Queryable, checked: readonly FoundOfServer[]): Promise<void> => {
    const servers = checked.map((server) => ({
      ...server,
      isClear: severe.every((rating) => server[rating] === 0),
    }));
    const open = await findOpenBySubject(trx, kind, servers.map(keyOf));
    for (const server of servers) {
      const openId = open.get(keyOf(server)) ?? null;
      if (openId === null || !(server.isClear || server.found.length > 0)) continue;
      const isGone = server.isClear && !server.hasLostSight;
      await resolveEpisode(trx, openId, isGone ? 'recovered' : 'removed');
      if (server.isClear) await enqueueResolved(trx, openId);
    }
    const unalerted = servers.filter(
      (server) => !server.isClear && server.found.length === 0 && !open.has(keyOf(server)),
    );
    const returned = Map.groupBy(await listActiveFindings(trx, unalerted, severe), keyOf);
    const found = [
      ...servers.filter((server) => server.found.length > 0).map((server) => ({ ...server, isNew: true })),
      ...unalerted.flatMap((server) => {
        const active = returned.get(keyOf(server));
        return active === undefined ? [] : [{ ...server, found: active, isNew: false }];
      }),
    ];
    const names = await nameAll(trx, found);
    for (const [place, server] of found.entries()) {
      const name = names.get(keyOf(server)) ?? `VM ${server.serverId}`;
      const id = await insertEpisode(
        trx,
        subjectOf(server, name, Math.max(0, found.length - notifiedMax), severe),
      );
      if (id !== null && place < notifiedMax) await enqueueOpened(trx, id);
      if (server.isNew) await events.record(trx, eventOf(server, name));
    }
  };
}

const keyOf = ({ clusterId, serverId }: Pick<FoundOfServer, 'clusterId' | 'serverId'>) =>
  `server:${clusterId}:${serverId}`;

async function nameAll(trx: Queryable, servers: readonly FoundOfServer[]): Promise<Map<string, string>> {
  return new Map((await nameServers(trx, servers)).map((server) => [keyOf(server), server.name]));
}

function subjectOf(server: FoundOfServer, name: string, others: number, severe: readonly string[]): Subject {
  const { cve, transport, port, product, version } = server.found[0]!;
  return {
    ...{ kind, key: keyOf(server), siteId: server.siteId, name, verdict: 'bad' },
    details: {
      found: countFound(server),
      severity: severe.join(' or '),
      first: `${cve} at ${transport}/${port} (${[product, version].filter((text) => text !== null).join(' ')})`,
      critical: server.critical,
      high: server.high,
      others,
      cluster_id: server.clusterId,
      vm_id: server.serverId,
    },
  };
}

function eventOf({ siteId, clusterId, serverId, found }: FoundOfServer, name: string): EventInput {
  return {
    kind: 'potential_vulnerabilities_found',
    siteId,
    details: {
      ...{ server: name, cluster_id: clusterId, vm_id: serverId, found: countFound({ found }) },
      cves: [...new Set(found.map(({ cve }) => cve))].slice(0, namedMax),
    },
  };
}

const countFound = ({ found }: Pick<FoundOfServer, 'found'>) =>
  found.reduce((sum, one) => sum + one.found, 0);
