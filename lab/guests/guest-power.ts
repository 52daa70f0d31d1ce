/** Switches guests on and off: their place in the network and the process that talks inside. */
import type { Reporter } from '#common/reporter/index.ts';
import type { Family } from '../traffic/exchanges.ts';
import type { GuestProcessInput } from '../traffic/guest-process.ts';
import { serviceSetOf } from '../traffic/old-services.ts';
import type { TalkCounts } from '../traffic/talk.ts';
import type { CertificateFiles } from '../traffic/web-service.ts';
import type { WorldNames } from '../world/name-world.ts';
import { type SupervisedProcess, superviseProcess } from '../world/supervise-process.ts';
import type { GuestDefinition } from './guest.ts';
import { plugGuest, unplugGuest } from './plug-guest.ts';

export interface GuestPowerDeps {
  names: WorldNames;
  reporter: Reporter;
  outboundPerSecond: number;
  /** Guests serve more than HTTP and TLS. */
  hasOldServices: boolean;
  certificate: () => CertificateFiles;
  /** Called with the names of the guests that are on, whenever they change. */
  changed: (running: ReadonlySet<string>) => void;
}

export type GuestPower = ReturnType<typeof createGuestPower>;

/** Calls must come one after another. */
export function createGuestPower(deps: GuestPowerDeps) {
  const processes = new Map<string, SupervisedProcess>();
  const tell = () => deps.changed(new Set(processes.keys()));
  async function switchOff(guest: GuestDefinition): Promise<void> {
    const process = processes.get(guest.name);
    processes.delete(guest.name);
    tell();
    await process?.stop();
    await unplugGuest(deps.names, guest);
  }
  return {
    /** Nothing happens when the guest is on already. A guest that can't be switched on is off afterwards. */
    async switchOn(guest: GuestDefinition): Promise<void> {
      if (processes.has(guest.name)) return;
      await plugGuest(deps.names, guest);
      const process = superviseGuest(deps, guest);
      processes.set(guest.name, process);
      try {
        await process.start();
      } catch (error) {
        await switchOff(guest);
        throw error;
      }
      tell();
    },
    /** Also removes what an untracked guest left behind. */
    switchOff,
    isOn: (name: string) => processes.has(name),
    /** Ends all guests' processes and leaves their namespaces to `removeWorld`. */
    async stopAll(): Promise<void> {
      const ending = [...processes.values()];
      processes.clear();
      tell();
      await Promise.all(ending.map((process) => process.stop()));
    },
    counts: (name: string): TalkCounts | null => processes.get(name)?.counts() ?? null,
  };
}

function superviseGuest(deps: GuestPowerDeps, guest: GuestDefinition): SupervisedProcess {
  const families = guest.addresses.map((entry): Family => (entry.address.includes(':') ? 6 : 4));
  const input: GuestProcessInput = {
    families: [...new Set(families)],
    outboundPerSecond: deps.outboundPerSecond,
    services: deps.hasOldServices ? serviceSetOf(guest.name) : null,
    ...deps.certificate(),
  };
  const namespace = deps.names.guestNamespacePrefix + guest.name;
  return superviseProcess({ namespace, file: 'traffic/guest-process.ts', input, reporter: deps.reporter });
}
