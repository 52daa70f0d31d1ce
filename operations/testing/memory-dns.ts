/** DNS servers of tests, with the reverse names of the addresses that documentation uses, and the names that lead to them. */
import { parsePrefix } from '#common/ip/index.ts';
import type { ReverseZone } from '#operations/reverse-dns/index.ts';

export type MemoryDns = ReturnType<typeof createMemoryDns>;

export function createMemoryDns() {
  /** Targets of PTR records, by record. */
  const records = new Map<string, string>();
  const forward = new Map<string, string[]>();
  const failures: Error[] = [];
  const zone = (prefix: string, name: string): ReverseZone => ({
    prefix: parsePrefix(prefix)!,
    name,
    async write(record, target) {
      const failure = failures.shift();
      if (failure) throw failure;
      if (target === null) records.delete(record);
      else records.set(record, target);
    },
  });
  return {
    records,
    /** What the next writes are answered; after them, they are carried out. */
    failures,
    zones: [
      zone('203.0.113.0/24', '113.0.203.in-addr.arpa'),
      zone('2001:db8::/32', '8.b.d.0.1.0.0.2.ip6.arpa'),
    ],
    resolve: async (name: string) => forward.get(name) ?? [],
    /** Gives the name a record with the address. */
    lead(name: string, address: string): void {
      forward.set(name, [...(forward.get(name) ?? []), address]);
    },
  };
}
