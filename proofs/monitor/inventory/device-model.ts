/**
 * The model of devices: it keeps observations and notices, and everything a page shows follows from them. Times are
 * minutes of a run; a machine ends half a minute into one.
 */

/** A listing of an import: machines and their MACs. */
export type Listing = { vm: number; macs: number[] }[];

/** The run's names for the model's numbers. */
export interface Names {
  macOf(mac: number): string;
  vmName(vm: number): string;
}

export interface ModelDevice {
  /** Minutes of observation by address. */
  seen: Map<string, number[]>;
  /** When its last machine ended, in minutes of the run. */
  releasedAt: number | null;
  match: { vm: number; isEnded: boolean } | null;
}

export class Model {
  devices = new Map<string, ModelDevice>();
  names = new Map<number, string>();
  /** MACs of live machines. */
  live = new Map<number, number[]>();
  told = new Set<number>();
  retired = new Map<number, number>();
  now = 0;

  see(mac: number, segment: number, address: string, minute: number): void {
    const key = `${segment}|${mac}`;
    const known = this.devices.get(key);
    const device = known ?? { seen: new Map(), releasedAt: this.retired.get(mac) ?? null, match: null };
    device.seen.set(address, [...(device.seen.get(address) ?? []), minute]);
    this.devices.set(key, device);
  }

  isArchived({ releasedAt, seen }: ModelDevice): boolean {
    return releasedAt !== null && [...seen.values()].flat().every((minute) => minute < releasedAt);
  }

  claims({ releasedAt, seen }: ModelDevice): string[] {
    const isLive = (minutes: number[]) =>
      minutes.some((minute) => releasedAt === null || minute >= releasedAt);
    return [...seen]
      .filter(([, minutes]) => isLive(minutes))
      .map(([address]) => address)
      .sort();
  }

  notice(vm: number, told: readonly number[]): void {
    if (this.told.has(vm)) return;
    this.told.add(vm);
    this.end(vm, told);
  }

  end(vm: number, told: readonly number[]): void {
    const gone = new Set([...(this.live.get(vm) ?? []), ...told]);
    this.live.delete(vm);
    const kept = new Set([...this.live.values()].flat());
    for (const [key, device] of this.devices) {
      const mac = Number(key.split('|')[1]);
      const isIts = device.match?.vm === vm;
      if ((isIts || gone.has(mac)) && !kept.has(mac)) {
        if (!this.isArchived(device)) device.releasedAt = this.now;
        if (device.match) device.match.isEnded = true;
      } else if (isIts) device.match!.isEnded = true;
    }
    for (const mac of gone) if (!kept.has(mac)) this.retired.set(mac, this.now);
  }

  import(list: Listing): void {
    for (const { vm, macs: listed } of list) this.live.set(vm, listed);
    for (const vm of [...this.live.keys()].sort()) {
      if (!list.some((one) => one.vm === vm)) this.end(vm, []);
    }
    for (const [key, device] of this.devices) {
      const mac = Number(key.split('|')[1]);
      const owners = list.filter((one) => one.macs.includes(mac));
      if (owners.length === 1) device.match = { vm: owners[0]!.vm, isEnded: false };
    }
  }

  /** A machine with a notice during the listing is not imported from it. */
  importWithNotice(list: Listing, vm: number, told: readonly number[]): void {
    const isFresh = !this.told.has(vm);
    this.notice(vm, told);
    this.import(isFresh ? list.filter((one) => one.vm !== vm) : list);
  }

  label(key: string, device: ModelDevice, run: Names): string {
    const mac = Number(key.split('|')[1]);
    const named = this.names.get(mac);
    if (named) return named;
    if (device.match && (!device.match.isEnded || this.isArchived(device)))
      return run.vmName(device.match.vm);
    if (mac === 3) return 'Randomized device';
    return mac < 2 ? 'Intel Corporate' : run.macOf(mac);
  }
}
