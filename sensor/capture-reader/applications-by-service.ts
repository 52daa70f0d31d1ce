/**
 * Applications for the tables: traffic without a name is listed under the service of its port, as on the monitor, for
 * every remote address.
 */
import { serviceName } from '#common/ip/port-services.ts';
import {
  ApplicationRow,
  type ApplicationRows,
  type ListedApplication,
  type RowWeight,
  type TableRows,
} from '#sensor/capture/index.ts';

/** The same rows, with the rows of each service added up, the largest first. */
export function applicationsByService(rows: ApplicationRows): TableRows<ListedApplication> {
  /** Sums by protocol and port, null where the port has no service. */
  const services = new Map<number, ListedApplication | null>();
  // There may be millions of others, so only their numbers are kept and they are not formatted.
  const others = new Uint32Array(rows.count);
  let otherCount = 0;
  for (let row = 0; row < rows.count; row += 1) {
    const { words, sums, at } = rows.raw(row);
    const key = (words[at + ApplicationRow.meta]! & 0xff) * 65_536 + words[at + ApplicationRow.serverPort]!;
    const isNamed = words[at + ApplicationRow.name]! >= 0;
    const sum = isNamed ? null : services.get(key);
    if (sum) {
      sum.inboundBytes += sums[at >> 1]!;
      sum.outboundBytes += sums[(at >> 1) + 1]!;
      sum.packets += sums[(at >> 1) + 2]!;
    } else if (sum === null || !startService(rows.at(row), key)) {
      others[otherCount] = row;
      otherCount += 1;
    }
  }

  /** True when the row is the first of a service. */
  function startService(first: ListedApplication, key: number): boolean {
    const name = serviceName(first.protocol, first.serverPort);
    services.set(key, name === null ? null : { ...first, name });
    return name !== null;
  }

  const named = [...services.values()].filter((sum) => sum !== null);
  const at = (row: number) => (row < named.length ? named[row]! : rows.at(others[row - named.length]!));
  return {
    count: named.length + otherCount,
    at,
    weight: (row, kind) =>
      row < named.length ? weightOf(named[row]!, kind) : rows.weight(others[row - named.length]!, kind),
    *[Symbol.iterator]() {
      for (let row = 0; row < named.length + otherCount; row += 1) yield at(row);
    },
  };
}

function weightOf({ inboundBytes, outboundBytes, packets }: ListedApplication, kind: RowWeight): number {
  if (kind === 'packets') return packets;
  if (kind === 'bytes') return inboundBytes + outboundBytes;
  return kind === 'sent' ? outboundBytes : inboundBytes;
}
