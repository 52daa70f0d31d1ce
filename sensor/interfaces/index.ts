/**
 * The host's network as known to its kernel: interfaces, addresses, bridges, VLANs, and neighbours on the segments.
 *
 * Read every minute, shortly before the upload is committed, with a time limit. On an error the last inventory stays in
 * use until it is five minutes old; then there is none.
 */
import type { Clock } from '#common/clock/index.ts';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { HostInventory } from '#contracts/sensor-api/telemetry.ts';
import { inventoryRecords } from '#sensor/records/index.ts';
import { assembleInventory, hostMacs } from './inventory.ts';
import type { KernelTables } from './kernel-tables.ts';
import { readFiles } from './read-files.ts';

export { readLinkBps } from './link-speed.ts';

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
