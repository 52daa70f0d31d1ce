/**
 * Which open ports belong to observed applications: those that the address hosted on the same transport and port
 * (NET-2.7.12). The others are services that only scans know; they never become applications.
 */
import type { ScanTransport } from '#contracts/port-scan/index.ts';

/** What an address hosted. */
export interface HostedApplication {
  address: string;
  name: string;
  /** IP protocol number. */
  protocol: number;
  serverPort: number | null;
}

const protocolOf: Readonly<Record<ScanTransport, number>> = { tcp: 6, udp: 17 };

/** The names of the applications of each port, in the order of the ports; none for a service that only scans know. */
export function matchApplications<Port extends { address: string; transport: ScanTransport; port: number }>(
  ports: readonly Port[],
  hosted: readonly HostedApplication[],
): { port: Port; applications: string[] }[] {
  const names = new Map<string, Set<string>>();
  for (const { address, protocol, serverPort, name } of hosted) {
    const key = `${address} ${protocol} ${serverPort}`;
    names.set(key, (names.get(key) ?? new Set()).add(name));
  }
  return ports.map((port) => ({
    port,
    applications: [...(names.get(`${port.address} ${protocolOf[port.transport]} ${port.port}`) ?? [])],
  }));
}
