/**
 * Names that sensors send, checked again: a host that was taken over must not write what it likes on pages and to
 * customers. What does not fit is not a name; the row keeps its bytes and is called by its port or its remote address.
 */
import { canonicalAddress } from '#common/ip/index.ts';
import type { TelemetryUsageRow } from '#contracts/sensor-api/telemetry.ts';

/** Recognised IP protocols (NET-2.2.4), by number. AH has its label over IPv4 only. */
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
/** What a sensor calls them that does not know their labels (NET-9.2). */
const genericLabel = 'IP';

/** Lower-case labels of letters, digits, hyphens and underscores, as sensors reduce hosts to. */
const hostName = /^(?=.{1,253}$)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*$/;

export type NamedRow = Pick<TelemetryUsageRow, 'name' | 'evidence' | 'protocol' | 'serverPort'> &
  Partial<Pick<TelemetryUsageRow, 'client' | 'server' | 'direction'>>;

/** The row with a name and evidence that a sensor of ours could have sent. */
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

/** The other end. A row without ends has only its protocol. */
function remoteOf({ direction, client, server }: NamedRow): string {
  return (direction === 'inbound' ? client : server) ?? genericLabel;
}
