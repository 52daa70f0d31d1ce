/**
 * Applications for people: traffic that nothing names goes to the service of its port, as on the monitor, whatever the
 * remote address is.
 */
import { serviceName } from '#common/ip/port-services.ts';
import type { ListedApplication, RowWeight, TableRows } from '#sensor/capture/index.ts';

/** The same rows, with those of one service added up, the largest first. */
export function applicationsByService(rows: TableRows<ListedApplication>): TableRows<ListedApplication> {
  const services = new Map<string, ListedApplication>();
  // Of the others there may be millions, so only their numbers are kept.
  const others: number[] = [];
  for (let row = 0; row < rows.count; row += 1) {
    const one = rows.at(row);
    const service = one.isNamed ? null : serviceName(one.protocol, one.serverPort);
    if (service === null) {
      others.push(row);
      continue;
    }
    const key = `${one.protocol}/${one.serverPort}`;
    const sum = services.get(key);
    if (!sum) services.set(key, { ...one, name: service });
    else {
      sum.inboundBytes += one.inboundBytes;
      sum.outboundBytes += one.outboundBytes;
      sum.packets += one.packets;
    }
  }
  const named = [...services.values()];
  const at = (row: number) => (row < named.length ? named[row]! : rows.at(others[row - named.length]!));
  return {
    count: named.length + others.length,
    at,
    weight: (row, kind) =>
      row < named.length ? weightOf(named[row]!, kind) : rows.weight(others[row - named.length]!, kind),
    *[Symbol.iterator]() {
      for (let row = 0; row < named.length + others.length; row += 1) yield at(row);
    },
  };
}

function weightOf({ inboundBytes, outboundBytes, packets }: ListedApplication, kind: RowWeight): number {
  if (kind === 'packets') return packets;
  if (kind === 'bytes') return inboundBytes + outboundBytes;
  return kind === 'sent' ? outboundBytes : inboundBytes;
}
