/** Which network the demo runs on: the lab's namespaces where this machine allows them, else a recording. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hasSystemPackages, installSystemPackages, systemPackages } from '#tools/system-packages.ts';

const here = fileURLToPath(new URL('.', import.meta.url));

/** The lab's own description of itself (`lab/control.md`), as far as the demo needs it. */
export interface LabFacts {
  pid: number;
  control_socket: string;
  hypervisor_namespace: string;
  uplink: string;
  bridge: string;
  node: string;
  networks: { prefix: string }[];
  host_address: string;
  gateway_address: string;
  resolver_address: string;
}

export const recording = { capture: join(here, 'recording.pcap'), guests: join(here, 'recording.json') };
/** Local prefixes of the recording; the lab tells its own. */
export const recordingCidrs = ['203.0.113.0/24', '2001:db8:113::/64'];

/** Why there can be no lab here, or null when there can; as root it installs what the lab needs. */
export async function whyNoLab(): Promise<string | null> {
  if (process.platform !== 'linux') return 'network namespaces need Linux';
  if (process.getuid?.() !== 0) return 'network namespaces need root';
  const named = (names: readonly string[]) => systemPackages.filter(({ name }) => names.includes(name));
  const needed = named(['iproute2', 'nftables', 'openssl']);
  // Without nmap the lab's ports are not scanned, and everything else works.
  await installSystemPackages([...needed, ...named(['nmap'])]);
  if (!hasSystemPackages(needed)) return 'the packages iproute2, nftables and openssl are missing';
  // The lab enters its namespaces by 'ip netns exec', which needs a mount namespace beside the network's.
  const probe = spawnSync('unshare', ['--net', '--mount', 'true']);
  return probe.status === 0 ? null : 'this machine does not allow network namespaces';
}

export function readLabFacts(dataDir: string): LabFacts | null {
  try {
    return JSON.parse(readFileSync(join(dataDir, 'lab', 'world.json'), 'utf8')) as LabFacts;
  } catch {
    return null;
  }
}
