/**
 * Argument lists of nmap (NET-2.7.5 to 2.7.7). Every argument is an element of its own, made of checked values; no shell
 * reads them.
 *
 * `--max-rate` is below the ceiling of 8,000 packets a second, because nmap sends a little more than it is told.
 * `--min-parallelism` keeps so many probes outstanding where nothing answers, some 570 a second: without it such a host is asked at
 * 99 a second. `--min-rate` would do that too, but nmap owes its packets of a pause then, and sends them at once, however many are
 * outstanding. There is no deadline, and no option that widens what is asked (`-A`, `-O`, `--allports`, `--script`).
 */
import { canonicalAddress, parseAddress } from '#common/ip/index.ts';
import type { ScanProfile, ScanTransport } from '#contracts/port-scan/index.ts';
import type { ScanTask } from './scan.ts';

/** Probes a second that one scan sends at most. */
export const packetRateMax = 7800;
const timing = [
  '-T4',
  ...['--min-rtt-timeout', '50ms', '--initial-rtt-timeout', '100ms', '--max-rtt-timeout', '500ms'],
  ...['--max-retries', '1', '--max-parallelism', '256'],
  ...['--max-rate', String(packetRateMax), '--min-parallelism', '32'],
];
const techniques: Readonly<Record<ScanTransport, readonly string[]>> = {
  tcp: ['-sS', '--defeat-rst-ratelimit'],
  udp: ['-sU', '--defeat-icmp-ratelimit'],
};
const portLetters: Readonly<Record<ScanTransport, string>> = { tcp: 'T', udp: 'U' };
const profiles: Readonly<Record<ScanProfile, readonly string[]>> = {
  common: ['--top-ports', '100'],
  full: ['-p', '1-65535'],
};
/** Name of an interface, as the kernel takes it, that no program takes for an option. */
const interfacePattern = /^[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,14}$/;

type Destination = Pick<ScanTask, 'address' | 'interfaceName' | 'sourceAddress'>;

/** Finds open ports of one transport. */
export function discoveryArguments(task: Destination, profile: ScanProfile, transport: ScanTransport) {
  return build(task, [...techniques[transport], ...profiles[profile]]);
}

/** Asks open ports what they run: nmap's full version detection. */
export function identificationArguments(
  task: Destination,
  transport: ScanTransport,
  ports: readonly number[],
): string[] {
  if (ports.length === 0 || ports.some((port) => !Number.isInteger(port) || port < 1 || port > 65_535))
    throw new Error('identification asks ports from 1 to 65535');
  const list = `${portLetters[transport]}:${ports.join(',')}`;
  return build(task, [...techniques[transport], '-sV', '--version-intensity', '9', '-p', list]);
}

/** Why these three can't be scanned together, as the end of a sentence; null when they can. */
export function destinationFault({ address, interfaceName, sourceAddress }: Destination): string | null {
  const bytes = parseAddress(address);
  const source = parseAddress(sourceAddress);
  if (!bytes || canonicalAddress(address) !== address) return `"${address}" is not one IP address`;
  if (!source || canonicalAddress(sourceAddress) !== sourceAddress)
    return `its source "${sourceAddress}" is not an IP address`;
  if (bytes.length !== source.length)
    return `its source ${sourceAddress} is of the other family, IPv4 or IPv6`;
  if (!isUnicast(bytes)) return `${address} does not belong to one host`;
  if (!interfacePattern.test(interfaceName)) return `"${interfaceName}" is not the name of an interface`;
  return null;
}

function isUnicast(bytes: Uint8Array): boolean {
  if (bytes.length === 4) return bytes[0]! > 0 && bytes[0]! < 224;
  return bytes[0] !== 0xff && bytes.some((byte) => byte !== 0);
}

function build(task: Destination, phase: readonly string[]): string[] {
  const fault = destinationFault(task);
  if (fault !== null) throw new Error(fault);
  const family = task.address.includes(':') ? ['-6'] : [];
  return [
    ...['-n', '-Pn', ...timing, '-S', task.sourceAddress, '-e', task.interfaceName],
    ...['--privileged', '--noninteractive', '-v', '--stats-every', '5s', '--no-stylesheet'],
    ...['-oX', '/dev/fd/3', ...family, ...phase, task.address],
  ];
}
