/**
 * A hypervisor with guests to scan: a network namespace with a bridge, and one for each guest with a link of its own into it, so
 * that every guest has a kernel's own limits on answers. Needs root.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { uniqueName } from './link-names.ts';
import { ended, toolPath } from './tool-link.ts';

const env = { ...process.env, PATH: toolPath };
const guestProgram = fileURLToPath(new URL('./scan-guest.ts', import.meta.url));

export const hostAddress = '198.51.100.1';
export const bridgeName = 'br0';
export const node = [process.execPath, '--disable-warning=ExperimentalWarning'];

/**
 * `open` refuses what it has no service for, `firewalled` drops everything but ssh, https and DNS, `silent` drops
 * everything.
 */
export type GuestKind = 'open' | 'firewalled' | 'silent';

export type ScanHosts = Awaited<ReturnType<typeof openScanHosts>>;

/** Makes the namespaces and starts the services of each guest that is not silent. */
export async function openScanHosts(kinds: readonly GuestKind[]) {
  const hypervisor = uniqueName();
  const guests = kinds.map(uniqueName);
  const addresses = kinds.map((_, i) => `198.51.100.${10 + i}`);
  const folder = mkdtempSync(join(tmpdir(), 'svc-scan-hosts-'));
  const services: ChildProcess[] = [];
  const close = async () => {
    for (const child of services) child.kill('SIGKILL');
    await Promise.all(services.map(ended));
    for (const name of [...guests, hypervisor])
      spawnSync('ip', ['netns', 'del', name], { env, stdio: 'ignore' });
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    batch(null, [`netns add ${hypervisor}`, ...guests.map((name) => `netns add ${name}`)]);
    buildHypervisor(hypervisor);
    for (const [i, name] of guests.entries()) {
      buildGuest(hypervisor, name, i, addresses[i]!);
      protectGuest(name, kinds[i]!);
    }
    makeCertificate(folder);
    for (const [i, name] of guests.entries())
      if (kinds[i] !== 'silent') services.push(await startServices(name, folder));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    /** Words that run a program on the hypervisor; unlike `ip netns exec` they leave its control groups visible. */
    hypervisor: inside(hypervisor),
    /** Of the guests, in the order in which they were asked for. */
    addresses,
    /** Packets that the guest's link received so far. */
    received: (guest: number) => receivedBy(guests[guest]!),
    close,
  };
}

function inside(name: string): string[] {
  return ['nsenter', `--net=/run/netns/${name}`];
}

function buildHypervisor(name: string): void {
  withoutIpv6(name);
  batch(name, [
    'link set lo up',
    `link add ${bridgeName} type bridge stp_state 0 mcast_snooping 0`,
    `addr add ${hostAddress}/24 dev ${bridgeName}`,
    `link set ${bridgeName} up`,
  ]);
}

function buildGuest(hypervisor: string, name: string, number: number, address: string): void {
  withoutIpv6(name);
  const link = `vm${number}`;
  batch(hypervisor, [
    `link add ${link} type veth peer name eth0 netns ${name}`,
    `link set ${link} master ${bridgeName}`,
    `link set ${link} up`,
  ]);
  batch(name, ['link set lo up', `addr add ${address}/24 dev eth0`, 'link set eth0 up']);
}

/** Its discovery of neighbours would be traffic that no scan sent. */
function withoutIpv6(name: string): void {
  const [tool, ...words] = inside(name);
  const settings = ['all', 'default'].map((of) => `net.ipv6.conf.${of}.disable_ipv6=1`);
  execFileSync(tool!, [...words, 'sysctl', '-q', '-w', ...settings], { env });
}

function protectGuest(name: string, kind: GuestKind): void {
  if (kind === 'open') return;
  const accepted =
    kind === 'silent'
      ? ''
      : 'ct state established accept\n tcp dport { 22, 443 } accept\n udp dport 53 accept';
  const rules = `table inet guest { chain input { type filter hook input priority 0; policy drop;\n ${accepted}\n }\n }\n`;
  const [tool, ...words] = inside(name);
  execFileSync(tool!, [...words, 'nft', '-f', '-'], { env, input: rules });
}

function makeCertificate(folder: string): void {
  const keys = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const files = ['-keyout', join(folder, 'key.pem'), '-out', join(folder, 'certificate.pem')];
  const words = ['req', '-x509', ...keys, ...files, '-days', '2', '-subj', '/CN=guest'];
  execFileSync('openssl', words, { env, stdio: ['ignore', 'ignore', 'ignore'] });
}

async function startServices(name: string, folder: string): Promise<ChildProcess> {
  const [tool, ...words] = [...inside(name), ...node, guestProgram, folder];
  const child = spawn(tool!, words, { env, stdio: ['pipe', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) if (line === 'ready') return child;
  throw new Error('the services of a guest did not start');
}

function receivedBy(name: string): number {
  const [tool, ...words] = inside(name);
  // One look at the namespace's own table: device, bytes, packets, …
  const table = execFileSync(tool!, [...words, 'cat', '/proc/net/dev'], { env, encoding: 'utf8' });
  return Number(/^\s*eth0:\s*\d+\s+(\d+)/m.exec(table)![1]);
}

function batch(name: string | null, lines: readonly string[]): void {
  const words = [...(name === null ? [] : ['-n', name]), '-batch', '-'];
  execFileSync('ip', words, {
    env,
    input: `${lines.join('\n')}\n`,
    stdio: ['pipe', 'ignore', 'inherit'],
  });
}
