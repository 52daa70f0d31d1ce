/** Selects what the query asks for: flows by ends, names, ports and protocols, and the rows that belong to them. */
import type {
  CountedUsage,
  ListedAnswer,
  ListedConversation,
  ListedFlow,
  ListedRows,
  RawRow,
  ReadingResult,
  RowWeight,
  WindowHost,
} from '#sensor/capture/index.ts';
import { isInPrefixes, matchesName, type ReadQuery } from './read-query.ts';

/** True when the query excludes anything. */
export function isFiltered(query: ReadQuery): boolean {
  return query.hosts.length + query.names.length + query.ports.length + query.protocols.length > 0;
}

/** The matching rows. Totals stay those of the whole capture. */
export interface Selection {
  flows: ListedRows<ListedFlow>;
  /** True when the row shows the same connection and host as the previous row. */
  continuesRowBefore(row: number): boolean;
  conversations: ListedRows<ListedConversation>;
  hosts: ListedRows<WindowHost>;
}

/**
 * With a name, port or protocol the hosts and conversations are those of the matching flows, with their complete
 * counters.
 */
export function selectRows({ flows, conversations, hosts }: ReadingResult, query: ReadQuery): Selection {
  if (!isFiltered(query)) {
    return { flows, conversations, hosts, continuesRowBefore: (row) => flows.continuesRowBefore(row) };
  }
  const byFlow = query.names.length + query.ports.length + query.protocols.length > 0;
  const pairs = new Set<string>();
  const ends = new Set<string>();
  const chosen = new ChosenRows(flows, (flow) => {
    if (!matchesFlow(flow, query)) return false;
    const { client, server } = flow;
    pairs.add(pairOf(client.ip, server.ip)).add(pairOf(server.ip, client.ip));
    ends.add(client.ip).add(server.ip);
    return true;
  });
  const isHost = (address: string) => query.hosts.length === 0 || isInPrefixes(query.hosts, address);
  return {
    flows: chosen,
    continuesRowBefore: (row) =>
      row > 0 &&
      chosen.rowOf(row - 1) === chosen.rowOf(row) - 1 &&
      flows.continuesRowBefore(chosen.rowOf(row)),
    conversations: new ChosenRows(
      conversations,
      (one) => (isHost(one.a) || isHost(one.b)) && (!byFlow || pairs.has(pairOf(one.a, one.b))),
    ),
    hosts: new ChosenRows(hosts, (one) => isHost(one.address) && (!byFlow || ends.has(one.address))),
  };
}

/** A subset of rows, by their numbers. */
class ChosenRows<T> implements ListedRows<T> {
  readonly #rows: ListedRows<T>;
  readonly #numbers: number[] = [];

  constructor(rows: ListedRows<T>, matches: (row: T) => boolean) {
    this.#rows = rows;
    for (let row = 0; row < rows.count; row += 1) if (matches(rows.at(row))) this.#numbers.push(row);
  }

  get count(): number {
    return this.#numbers.length;
  }

  rowOf(row: number): number {
    return this.#numbers[row]!;
  }

  at(row: number): T {
    return this.#rows.at(this.rowOf(row));
  }

  raw(row: number): RawRow {
    return this.#rows.raw(this.rowOf(row));
  }

  weight(row: number, kind: RowWeight): number {
    return this.#rows.weight(this.rowOf(row), kind);
  }

  *[Symbol.iterator](): Iterator<T> {
    for (const row of this.#numbers) yield this.#rows.at(row);
  }
}

const pairOf = (a: string, b: string) => `${a} ${b}`;

/** True for an answer that matches the query. */
export function matchesAnswer(answer: ListedAnswer, { hosts, names, ports, protocols }: ReadQuery): boolean {
  const isHost = (address: string) => isInPrefixes(hosts, address);
  return (
    (hosts.length === 0 ||
      isHost(answer.client.ip) ||
      isHost(answer.server.ip) ||
      answer.addresses.some(({ address }) => isHost(address))) &&
    (names.length === 0 || answer.cnameChain.some((name) => matchesName(names, name))) &&
    ((protocols.length === 0 && ports.length === 0) || ports.includes(53))
  );
}

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

/** True for traffic of an application that matches the query. */
export function matchesUsage(usage: CountedUsage, { hosts, names, ports, protocols }: ReadQuery): boolean {
  return (
    (hosts.length === 0 || isInPrefixes(hosts, usage.client) || isInPrefixes(hosts, usage.server)) &&
    (names.length === 0 || matchesName(names, usage.name)) &&
    (ports.length === 0 || (usage.serverPort > 0 && ports.includes(usage.serverPort))) &&
    (protocols.length === 0 || protocols.includes(usage.protocol))
  );
}
