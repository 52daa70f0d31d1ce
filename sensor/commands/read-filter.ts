/** Leaves of a reading what the query asks for: flows by their ends, names, ports and protocols, and what belongs to them. */
import type { ListedFlow, ReadingResult, UsageRow } from '#sensor/capture/index.ts';
import { isInPrefixes, matchesName, type ReadQuery } from './read-query.ts';

/** True when the query asks for less than everything. */
export function isFiltered(query: ReadQuery): boolean {
  return query.hosts.length + query.names.length + query.ports.length + query.protocols.length > 0;
}

/**
 * The rows that match. Totals stay those of the capture. With a name, port or protocol the hosts and conversations are
 * those of the flows that match, with their whole counters.
 */
export function filterReading(result: ReadingResult, query: ReadQuery): ReadingResult {
  if (!isFiltered(query)) return result;
  const flows = result.flows.filter((flow) => matchesFlow(flow, query));
  const isHost = (address: string) => query.hosts.length === 0 || isInPrefixes(query.hosts, address);
  const byFlow = query.names.length + query.ports.length + query.protocols.length > 0;
  const pairs = new Set(
    flows.flatMap(({ client, server }) => [pairOf(client.ip, server.ip), pairOf(server.ip, client.ip)]),
  );
  const ends = new Set(flows.flatMap(({ client, server }) => [client.ip, server.ip]));
  const dnsOnly = query.protocols.length === 0 && query.ports.length === 0;
  return {
    ...result,
    flows,
    answers: result.answers.filter(
      (one) =>
        (isHost(one.client.ip) ||
          isHost(one.server.ip) ||
          one.addresses.some(({ address }) => query.hosts.length > 0 && isHost(address))) &&
        (query.names.length === 0 || one.cnameChain.some((name) => matchesName(query.names, name))) &&
        (dnsOnly || query.ports.includes(53)),
    ),
    conversations: result.conversations.filter(
      (one) => (isHost(one.a) || isHost(one.b)) && (!byFlow || pairs.has(pairOf(one.a, one.b))),
    ),
    hosts: result.hosts.filter((one) => isHost(one.address) && (!byFlow || ends.has(one.address))),
    usage: result.usage.filter((row) => matchesUsage(row, query)),
  };
}

const pairOf = (a: string, b: string) => `${a} ${b}`;

function matchesFlow(flow: ListedFlow, query: ReadQuery): boolean {
  const { hosts, names, ports, protocols } = query;
  const { client, server } = flow;
  return (
    (hosts.length === 0 || isInPrefixes(hosts, client.ip) || isInPrefixes(hosts, server.ip)) &&
    (names.length === 0 || matchesName(names, flow.host ?? '') || matchesName(names, flow.name)) &&
    (ports.length === 0 || ports.some((port) => port === client.port || port === server.port)) &&
    (protocols.length === 0 || protocols.includes(flow.protocol))
  );
}

function matchesUsage(row: UsageRow, query: ReadQuery): boolean {
  const { hosts, names, ports, protocols } = query;
  return (
    (hosts.length === 0 || isInPrefixes(hosts, row.client) || isInPrefixes(hosts, row.server)) &&
    (names.length === 0 || matchesName(names, row.name)) &&
    (ports.length === 0 || (row.serverPort !== null && ports.includes(row.serverPort))) &&
    (protocols.length === 0 || protocols.includes(row.protocol))
  );
}
