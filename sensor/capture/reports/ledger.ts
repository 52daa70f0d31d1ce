/** The counters of a minute: addresses and rows of usage, filled when flows are flushed, and spoofed packets as they come. */
import type { NameTable } from '../names/name-table.ts';
import { HostTable } from './host-table.ts';
import { SpoofedTable } from './spoofed-table.ts';
import { UsageTable } from './usage-table.ts';

export class Ledger {
  readonly hosts: HostTable;
  readonly usage: UsageTable;
  readonly spoofed: SpoofedTable;

  constructor(
    names: NameTable,
    seed: number,
    remoteHostsMax: number,
    usageRowsMax: number,
    noiseRowsMax: number,
  ) {
    this.hosts = new HostTable(seed, remoteHostsMax, noiseRowsMax);
    this.usage = new UsageTable(names, seed, usageRowsMax);
    this.spoofed = new SpoofedTable(seed);
  }

  /** Starts a new minute. */
  clear(): void {
    this.hosts.clear();
    this.usage.clear();
    this.spoofed.clear();
  }
}
