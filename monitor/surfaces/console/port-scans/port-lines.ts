/** Open ports with the names of their servers and the applications that they serve. */

import type { HostedApplication } from '#monitor/scans/index.ts';
import { matchApplications, type OpenPort } from '#monitor/scans/index.ts';
import { nameServers } from '#monitor/views/address-store.ts';
import type { PortFindings } from '#monitor/vulnerabilities/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import type { PortLine } from './scan-tables.ts';

type Server = Pick<OpenPort, 'clusterId' | 'serverId'>;
type ServerNames = (server: Server) => string;

export async function nameAll(
  { db }: Pick<ConsoleDeps, 'db'>,
  servers: readonly Server[],
): Promise<ServerNames> {
  const keyOf = ({ clusterId, serverId }: Server) => `${clusterId} ${serverId}`;
  const distinct = [...new Map(servers.map((one) => [keyOf(one), one])).values()];
  const names = new Map((await nameServers(db(), distinct)).map((one) => [keyOf(one), one.name]));
  return (server) => names.get(keyOf(server)) ?? `VM ${server.serverId}`;
}

/** What was assessed of open ports, by their places. */
export async function findingsOf(
  { vulnerabilities }: Pick<ConsoleDeps, 'vulnerabilities'>,
  ports: readonly OpenPort[],
): Promise<FindingsAt> {
  const servers = new Map(ports.map((port) => [`${port.clusterId} ${port.serverId}`, port]));
  const found = await vulnerabilities.listPortFindings([...servers.values()]);
  const byPlace = new Map(found.map((one) => [placeOf(one), one]));
  return (port) => byPlace.get(placeOf(port)) ?? null;
}

type FindingsAt = (port: OpenPort) => PortFindings | null;

function placeOf(port: Pick<PortFindings, 'clusterId' | 'serverId' | 'address' | 'transport' | 'port'>) {
  return `${port.clusterId} ${port.serverId} ${port.address} ${port.transport}/${port.port}`;
}

export function linesOf(
  ports: readonly OpenPort[],
  hosted: Hosted,
  names: ServerNames,
  findings: FindingsAt,
): PortLine[] {
  return matchApplications(ports, hosted.applications).map(({ port, applications }) => ({
    ...{ port, server: names(port), findings: findings(port) },
    applications: hosted.addresses.has(port.address) ? applications : null,
  }));
}

// What addresses with open ports hosted in the last 24 hours.

/** Addresses of one page that are looked up. */
const addressesMax = 200;
const dayMinutes = 1440;

interface Hosted {
  applications: HostedApplication[];
  /** The addresses that were looked up. */
  addresses: ReadonlySet<string>;
}

export async function hostedOf(
  { applications }: Pick<ConsoleDeps, 'applications'>,
  siteId: number,
  ports: readonly { address: string }[],
  nowMs: number,
): Promise<Hosted> {
  const addresses = [...new Set(ports.map(({ address }) => address))].slice(0, addressesMax);
  const toMinute = Math.floor(nowMs / 60_000) * 60;
  const fromMinute = toMinute - dayMinutes * 60;
  const hosted: HostedApplication[] = [];
  for (const address of addresses) {
    const used = await applications.sumAddressApplications(siteId, address, fromMinute, toMinute);
    // An address that never answered hosts nothing (NET-2.4.4).
    for (const { direction, name, isAttributed, protocol, serverPort, lastSentMs } of used)
      if (direction === 'inbound' && lastSentMs !== null)
        hosted.push({ address, name: isAttributed ? name : 'unnamed', protocol, serverPort });
  }
  return { applications: hosted, addresses: new Set(addresses) };
}
