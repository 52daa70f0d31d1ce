/** The counters of a minute, filled when flows are flushed: addresses, and rows of usage. */
import type { NameTable } from '../names/name-table.ts';
import { HostTable } from './host-table.ts';
import { UsageTable } from './usage-table.ts';

export class Ledger {
  readonly hosts: HostTable;
  readonly usage: UsageTable;

  constructor(
    names: NameTable,
    seed: number,
    remoteHostsMax: number,
    usageRowsMax: number,
    noiseRowsMax: number,
  ) {
    this.hosts = new HostTable(seed, remoteHostsMax, noiseRowsMax);
    this.usage = new UsageTable(names, seed, usageRowsMax);
  }

  /** Starts a new minute. */
  clear(): void {
    this.hosts.clear();
    this.usage.clear();
  }
}
