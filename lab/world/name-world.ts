/**
 * The names that a world has on the machine: namespaces, links, addresses, files.
 *
 * All derive from a short hash of the data directory's real path, so that two worlds stand side by side and a world
 * finds its own leftovers after a crash.
 */
import { createHash } from 'node:crypto';
import { chmodSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolders } from '#common/folders/index.ts';

export interface WorldNames {
  /** Six hex digits. */
  world: string;
  /** `<data dir>/lab`, mode 0700. */
  directory: string;
  hypervisorNamespace: string;
  internetNamespace: string;
  /** Every namespace of this world begins with it. */
  namespacePrefix: string;
  guestNamespacePrefix: string;
  /** The management link's end in the host. */
  hostLink: string;
  hostAddress: string;
  hypervisorAddress: string;
  controlSocket: string;
  worldFile: string;
  guestsFile: string;
  truthLedger: string;
  node: string;
}

/** A Unix socket's path holds 107 bytes; past this length the socket lives below /run. */
const socketPathBytesMax = 100;

/** Makes the world's folder and derives its names. Throws what `mkdir` throws when the folder can't be made. */
export function nameWorld(dataDir: string): WorldNames {
  makeFolders(dataDir);
  const directory = join(realpathSync(dataDir), 'lab');
  makeFolders(directory);
  chmodSync(directory, 0o700);
  const digest = createHash('sha256').update(directory).digest();
  const world = digest.toString('hex').slice(0, 6);
  // 169.254.64.0 to 169.254.127.255 in blocks of four: clear of the metadata address that clouds keep in 169.254.169.
  const third = 64 + (digest[8]! % 64);
  const fourth = (digest[9]! % 63) * 4;
  const socketInFolder = join(directory, 'control.sock');
  const socketFits = Buffer.byteLength(socketInFolder) <= socketPathBytesMax;
  return {
    world,
    directory,
    hypervisorNamespace: `svc-${world}-hv`,
    internetNamespace: `svc-${world}-net`,
    namespacePrefix: `svc-${world}-`,
    guestNamespacePrefix: `svc-${world}-g-`,
    hostLink: `svcm-${world}`,
    hostAddress: `169.254.${third}.${fourth + 1}`,
    hypervisorAddress: `169.254.${third}.${fourth + 2}`,
    controlSocket: socketFits ? socketInFolder : `/run/svc-lab-${world}.sock`,
    worldFile: join(directory, 'world.json'),
    guestsFile: join(directory, 'guests.json'),
    truthLedger: join(directory, 'truth.jsonl'),
    node: `lab-${world}`,
  };
}

/** The guest's link on the bridge; a hash, because link names end at 15 characters. */
export function nameGuestLink(guestName: string): string {
  return `vm-${createHash('sha256').update(guestName).digest('hex').slice(0, 8)}`;
}
