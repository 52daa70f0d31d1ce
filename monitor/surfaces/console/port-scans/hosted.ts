/** What addresses with open ports hosted in the last 24 hours. */
import type { HostedApplication } from '#monitor/scans/index.ts';
import type { ConsoleDeps } from '../deps.ts';

/** Addresses of one page that are looked up. */
const addressesMax = 200;
const dayMinutes = 1440;

export interface Hosted {
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
