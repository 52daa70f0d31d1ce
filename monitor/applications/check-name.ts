/**
 * Checks names from sensors again: a compromised host must not put arbitrary text on pages or into feeds. The row of an
 * invalid name keeps its bytes and is named by its port or remote address.
 */
import { canonicalAddress } from '#common/ip/index.ts';
import type { TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';

/** Recognised IP protocols (NET-2.2.4), by number. AH has a label over IPv4 only. */
const protocolLabels: Readonly<Record<number, string>> = {
  2: 'IGMP',
  4: 'IP-in-IP',
  41: 'IPv6-in-IP',
  47: 'GRE',
  50: 'IPsec ESP',
  51: 'IPsec AH',
  89: 'OSPF',
  132: 'SCTP',
};
/** Label from a sensor that does not know the protocol labels (NET-9.2). */
const genericLabel = 'IP';

/** Lower-case labels of letters, digits, hyphens and underscores, the form in which sensors send hosts. */
const hostName = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;

export type NamedRow = Pick<TelemetryUsageRow, 'name' | 'evidence' | 'protocol' | 'serverPort'> &
  Partial<Pick<TelemetryUsageRow, 'client' | 'server' | 'direction'>>;

/** The row with only valid names and evidence. */
export function checkName<T extends NamedRow>(row: T): T {
  switch (row.evidence) {
    case 'ip_protocol': {
      const label = protocolLabels[row.protocol];
      const isKnown = row.name === genericLabel || (row.name === label && !isAhOverIpv6(row));
      return isKnown ? row : { ...row, name: label && !isAhOverIpv6(row) ? label : genericLabel };
    }
    case 'none':
      return isRemoteName(row) ? row : { ...row, name: remoteOf(row) };
    default:
      return hostName.test(row.name) || canonicalAddress(row.name) === row.name
        ? row
        : { ...row, name: remoteOf(row), evidence: 'none' };
  }
}

function isAhOverIpv6({ protocol, server }: NamedRow): boolean {
  return protocol === 51 && server?.includes(':') === true;
}

function isRemoteName({ name, serverPort }: NamedRow): boolean {
  return canonicalAddress(name) === name || (name === genericLabel && serverPort === null);
}

/** The remote end. A row without ends has only its protocol. */
function remoteOf({ direction, client, server }: NamedRow): string {
  return (direction === 'inbound' ? client : server) ?? genericLabel;
}
