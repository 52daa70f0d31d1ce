/** Selection as the rules say it: which capture of an address and minute counts, and whose the address was. */
import { parseAddress } from '#common/ip/index.ts';
import type * as facts from '../facts.ts';
import type { HostRow, MemoryRows } from './memory-rows.ts';

export const sumOf = <T>(all: Iterable<T>, read: (one: T) => number) =>
  [...all].reduce((sum, one) => sum + read(one), 0);
export const compare = <T extends string | number>(a: T, b: T) => (a < b ? -1 : a > b ? 1 : 0);
export const within = (range: { fromMinute: number; toMinute: number }) => (one: { minute: number }) =>
  one.minute >= range.fromMinute && one.minute < range.toMinute;
export const nullsLast = <T extends string | number>(a: T | null, b: T | null) =>
  a === b ? 0 : a === null ? 1 : b === null ? -1 : compare(a, b);
export const stepOf = (minute: number, stepSeconds: number) =>
  Math.floor(minute / stepSeconds) * stepSeconds * 1000;

export function compareAddresses(a: string, b: string): number {
  const [x, y] = [parseAddress(a)!, parseAddress(b)!];
  return x.length - y.length || Buffer.compare(x, y);
}

/** The chosen row of an address's minute comes first. */
export function byStrength(a: HostRow, b: HostRow): number {
  return (
    b.rxBytes + b.txBytes - (a.rxBytes + a.txBytes) ||
    b.capture.observedMs - a.capture.observedMs ||
    a.capture.vantage - b.capture.vantage ||
    b.rxBytes - a.rxBytes ||
    a.capture.sensorId - b.capture.sensorId ||
    compare(a.capture.name, b.capture.name)
  );
}

/** Rows after selection, the chosen one of each address and minute. */
export function strongest(rows: MemoryRows, range: facts.SiteRange): HostRow[] {
  const inRange = rows.hosts(range.siteId).filter(within(range));
  return [...Map.groupBy(inRange, (one) => `${one.address} ${one.minute}`).values()].map((all) => ({
    ...all.toSorted(byStrength)[0]!,
    deviceKey: ownerOf(all),
  }));
}

/** Of one address and minute: what the captures that know an owner agree on. */
export function ownerOf(all: readonly HostRow[]): string {
  const known = new Set(all.map((one) => one.deviceKey).filter((deviceKey) => deviceKey !== ''));
  return known.size === 1 && !all.some((one) => one.isDisputed) ? [...known][0]! : '';
}

export interface OwnedMinute {
  kind: 'wan' | 'lan';
  minute: number;
  deviceKey: string;
  rxBytes: number;
  txBytes: number;
}

/** What each address and minute adds to its owner, all of it and the internal part. */
export function owned(rows: MemoryRows, range: facts.SiteRange): OwnedMinute[] {
  const wan = strongest(rows, range).map(({ minute, deviceKey, rxBytes, txBytes }) => {
    return { kind: 'wan' as const, minute, deviceKey, rxBytes, txBytes };
  });
  const lan: OwnedMinute[] = [];
  const internal = rows
    .hosts(range.siteId)
    .filter((one) => within(range)(one) && one.lanRxBytes + one.lanTxBytes > 0);
  for (const all of Map.groupBy(internal, (one) => one.minute).values()) {
    const owner = Math.max(...all.map((one) => one.capture.vantage));
    const eligible = all.filter((one) => one.capture.vantage === owner);
    for (const ofAddress of Map.groupBy(eligible, (one) => one.address).values()) {
      const asLan = ofAddress.map((one) => ({ ...one, rxBytes: one.lanRxBytes, txBytes: one.lanTxBytes }));
      const { minute, deviceKey, rxBytes, txBytes } = asLan.sort(byStrength)[0]!;
      lan.push({ kind: 'lan', minute, deviceKey, rxBytes, txBytes });
    }
  }
  return [...wan, ...lan];
}
