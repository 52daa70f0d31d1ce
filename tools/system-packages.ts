/**
 * Debian packages that tests and the lab use beside npm's. As root they are announced and installed, after a question on a
 * terminal; an ordinary user is told what is left out. On the build machine (`CI`) nothing may be left out. A kernel and busybox for guests
 * of libvirt are only unpacked (`operations/hypervisors/testing/linux-image.ts`).
 */
import { type SpawnSyncOptions, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline/promises';

export interface SystemPackage {
  name: string;
  /** A file that it brings. */
  file: string;
  /** A file of another package that does the same at a higher price: with it, nothing is left out. */
  instead?: string;
  /** What can't run without it. */
  use: string;
}

export const systemPackages: readonly SystemPackage[] = [
  { name: 'iproute2', file: '/usr/sbin/ip', use: 'network namespaces of the lab' },
  { name: 'libbpf1', file: '/usr/lib/x86_64-linux-gnu/libbpf.so.1', use: 'counting in the kernel' },
  { name: 'clang', file: '/usr/bin/clang', use: "compiling the kernel's programs" },
  { name: 'llvm', file: '/usr/bin/llvm-strip', use: "compiling the kernel's programs" },
  { name: 'libbpf-dev', file: '/usr/include/bpf/bpf_helpers.h', use: "compiling the kernel's programs" },
  { name: 'nftables', file: '/usr/sbin/nft', use: 'independent counters of the lab' },
  { name: 'openssl', file: '/usr/bin/openssl', use: 'certificates of the lab' },
  { name: 'tcpdump', file: '/usr/bin/tcpdump', use: 'recording a capture in the lab' },
  { name: 'nmap', file: '/usr/bin/nmap', use: 'port scans' },
  { name: 'curl', file: '/usr/bin/curl', use: 'examples of the API reference' },
  { name: 'python3', file: '/usr/bin/python3', use: 'the Python client' },
  { name: 'ansible-core', file: '/usr/bin/ansible-playbook', use: 'the Ansible collection' },
  { name: 'strace', file: '/usr/bin/strace', use: 'proofs about the order of writes' },
  { name: 'systemd', file: '/usr/bin/systemd-analyze', use: "checks of the packaged service's unit" },
  { name: 'lintian', file: '/usr/bin/lintian', use: 'checks of the Debian package' },
  { name: 'libvirt-clients', file: '/usr/bin/virsh', use: 'guests of libvirt' },
  { name: 'libvirt-daemon', file: '/usr/sbin/libvirtd', use: 'guests of libvirt' },
  {
    name: 'libvirt-daemon-driver-qemu',
    file: '/usr/lib/x86_64-linux-gnu/libvirt/connection-driver/libvirt_driver_qemu.so',
    use: 'guests of libvirt',
  },
  { name: 'qemu-system-x86', file: '/usr/bin/qemu-system-x86_64', use: 'guests of libvirt' },
  { name: 'qemu-utils', file: '/usr/bin/qemu-img', use: 'guests of libvirt' },
  { name: 'genisoimage', file: '/usr/bin/genisoimage', use: 'guests of libvirt' },
  // It brings ebtables as well.
  { name: 'iptables', file: '/usr/sbin/ebtables-nft', use: 'guards and firewalls of libvirt' },
  { name: 'gobgpd', file: '/usr/bin/gobgpd', use: 'routes of hand-off' },
  {
    name: 'prometheus-alertmanager',
    file: '/usr/bin/prometheus-alertmanager',
    use: 'sending alerts to it',
  },
  { name: 'rsyslog', file: '/usr/sbin/rsyslogd', use: 'sending alerts as syslog' },
  {
    name: 'rsyslog-gnutls',
    file: '/usr/lib/x86_64-linux-gnu/rsyslog/lmnsd_gtls.so',
    use: 'sending alerts as syslog',
  },
  { name: 'pdns-server', file: '/usr/sbin/pdns_server', use: 'reverse DNS by the API of PowerDNS' },
  {
    name: 'pdns-backend-sqlite3',
    file: '/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql',
    use: 'reverse DNS by the API of PowerDNS',
  },
  { name: 'bind9', file: '/usr/sbin/named', use: 'reverse DNS by dynamic updates' },
  { name: 'redis-server', file: '/usr/bin/redis-server', use: 'live windows and limits of many machines' },
  {
    name: 'postgresql',
    file: '/usr/bin/pg_restore',
    use: 'a PostgreSQL of your own, its backup and restore',
  },
  {
    name: 'chromium-headless-shell',
    file: '/usr/lib/chromium/chromium-headless-shell',
    instead: '/usr/bin/chromium',
    use: 'pages in a real browser',
  },
];

const isThere = (file: string) => existsSync(file) || existsSync(file.replace('/usr/', '/'));

/** True when all of them are there. */
export function hasSystemPackages(wanted: readonly SystemPackage[]): boolean {
  return wanted.every(({ file, instead }) => isThere(file) || (instead !== undefined && isThere(instead)));
}

/** What the installation asks of this machine; another one in tests. */
export interface Machine {
  isThere(file: string): boolean;
  /** Root on a Debian. */
  mayInstall: boolean;
  /** A person at the terminal can answer questions. */
  isTerminal: boolean;
  say(line: string): void;
  ask(question: string): Promise<string>;
  /** True when the packages are there now. */
  install(names: readonly string[]): boolean;
}

const thisMachine: Machine = {
  isThere,
  mayInstall: process.getuid?.() === 0 && existsSync('/usr/bin/apt-get'),
  isTerminal: process.stdin.isTTY === true && process.stdout.isTTY === true && !process.env.CI,
  say: (line) => console.log(line),
  async ask(question) {
    const lines = createInterface({ input: process.stdin, output: process.stdout });
    try {
      return await lines.question(question);
    } finally {
      lines.close();
    }
  },
  install(names) {
    const environment = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
    const options: SpawnSyncOptions = { stdio: ['ignore', 'ignore', 'inherit'], env: environment };
    spawnSync('apt-get', ['update', '-qq'], options);
    const words = ['install', '-y', '-qq', '--no-install-recommends', ...names];
    return spawnSync('apt-get', words, options).status === 0;
  },
};

/**
 * True when everything is there, or may be left out. What root installs is announced first, and asked for on a terminal:
 * an empty answer is yes.
 */
export async function installSystemPackages(
  wanted: readonly SystemPackage[] = systemPackages,
  machine: Machine = thisMachine,
): Promise<boolean> {
  const missing = wanted.filter((entry) => !machine.isThere(entry.file));
  if (missing.length === 0) return true;
  const names = missing.map((entry) => entry.name);
  if (machine.mayInstall) {
    machine.say('these Debian packages are missing, and are installed as root with apt-get:');
    for (const entry of missing) machine.say(`  ${entry.name}: ${entry.use}`);
    const answer = machine.isTerminal ? (await machine.ask('Install them? [Y/n] ')).trim() : '';
    if (/^(y|yes)?$/i.test(answer)) {
      if (machine.install(names)) return true;
      machine.say(`apt-get could not install ${names.join(', ')}`);
    }
  }
  const leftOut = missing.filter(({ instead }) => instead === undefined || !machine.isThere(instead));
  for (const entry of leftOut) machine.say(`left out without ${entry.name}: ${entry.use}`);
  if (leftOut.length > 0 && process.env.CI) {
    machine.say('nothing may be left out here: run as root on Debian, or install these packages first');
    return false;
  }
  return true;
}
