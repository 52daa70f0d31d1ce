/** Whether this host may scan a target of the plan. */
import { networkInterfaces } from 'node:os';
import { canonicalAddress } from '#common/ip/index.ts';
import type { ScanTarget } from '#contracts/sensor-api/port-scans.ts';
import { isOwnAddress } from './find-route.ts';
import { destinationFault } from './nmap-arguments.ts';

/** NET-2.7.8: the source is still this host's, at the interface that the plan names; the host itself is no target. */
export function targetFault(
  target: Pick<ScanTarget, 'address' | 'interface' | 'source_address'>,
): string | null {
  const { address, interface: interfaceName, source_address: sourceAddress } = target;
  const fault = destinationFault({ address, interfaceName, sourceAddress });
  if (fault !== null) return fault;
  if (isOwnAddress(address)) return `${address} is this host's own address`;
  const entries = networkInterfaces()[interfaceName] ?? [];
  if (!entries.some((entry) => canonicalAddress(entry.address) === sourceAddress))
    return `${sourceAddress} is not an address of ${interfaceName} on this host`;
  return null;
}
