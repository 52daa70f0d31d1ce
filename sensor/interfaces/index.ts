/**
 * The host's network as known to its kernel: interfaces, addresses, bridges, VLANs, and neighbours on the segments.
 *
 * Read every minute, shortly before the upload is committed, with a time limit. On an error the last inventory stays in
 * use until it is five minutes old; then there is none.
 */

import { existsSync, readFileSync } from 'node:fs';
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { HostInventory } from '#contracts/sensor-api/telemetry.ts';
import { inventoryRecords } from '#sensor/records/index.ts';
import { assembleInventory, hostMacs } from './inventory.ts';
import type { KernelTables } from './kernel-tables.ts';
import { readFiles } from './read-files.ts';

const refreshEveryMs = 55_000;
/** Scans use an inventory for this long (NET-2.7.8). */
const usableMs = 300_000;

export type Interfaces = ReturnType<typeof createInterfaces>;

export interface InterfacesOptions {
  clock: Clock;
  reporter: Reporter;
  /** Another reader, for tests. */
  read?: () => Promise<KernelTables>;
}

/** Creates the reader; it reads nothing before `start`. */
export function createInterfaces(options: InterfacesOptions) {
  const { clock, reporter } = options;
  const read = options.read ?? readKernel;
  const stopping = new AbortController();
  let inventory: HostInventory | null = null;
  let foreign: ReadonlySet<string> = new Set();
  let isFailing = false;
  let running: Promise<void> = Promise.resolve();

  async function refresh(): Promise<void> {
    try {
      inventory = assembleInventory(await read(), clock.nowMs());
      foreign = new Set([
        ...hostMacs(inventory.interfaces),
        ...inventory.neighbours.filter((one) => one.isRouter).map((one) => one.mac),
      ]);
      isFailing = false;
    } catch (error) {
      if (!isFailing) reporter.warn("the host's interfaces can not be read", { why: describeError(error) });
      isFailing = true;
    }
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await clock.wait(refreshEveryMs, stopping.signal);
      if (!stopping.signal.aborted) await refresh();
    }
  }

  return {
    name: 'interfaces',
    kind: inventoryRecords,
    /** The newest inventory; null before the first one and when it is too old. */
    ready: (): HostInventory | null =>
      inventory && clock.nowMs() - inventory.observedAtMs < usableMs ? inventory : null,
    /** MACs of this host and of its routers: they own no address (NET-2.2.9). */
    foreignMacs: () => foreign,
    async start() {
      await refresh();
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Uses the kernel's sockets if possible, otherwise its files. */
async function readKernel(): Promise<KernelTables> {
  try {
    return (await import('./read-netlink.ts')).readNetlink();
  } catch {
    return readFiles();
  }
}

/** Speed of an interface's link in bits a second; null where its driver does not know it, or makes one up as tun and tap do. */
export function readLinkBps(interfaceName: string, folder = '/sys/class/net'): number | null {
  const at = `${folder}/${interfaceName}`;
  try {
    if (existsSync(`${at}/tun_flags`)) return null;
    // -1, or an error, where it is unknown; 4,294,967,295 in older kernels.
    const megabits = Number(readFileSync(`${at}/speed`, 'utf8'));
    return megabits > 0 && megabits < 2 ** 32 - 1 ? megabits * 1e6 : null;
  } catch {
    return null;
  }
}
