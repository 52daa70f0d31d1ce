/** Links to more about the same thing: in the monitor, where single sign-on is set up, and in the explorer of traffic. */
import type { Place, PlaceRange } from '#contracts/sign-on/index.ts';
import type { Actor } from '#operations/accounts/index.ts';
import { exploreHref } from '#service-kit/explorer/index.ts';
import { type Content, link } from '#service-kit/pages/index.ts';
import type { SignOn } from '#service-kit/sign-on/index.ts';

interface MonitorLinkOptions {
  /** Default `button`, for headers. */
  kind?: 'plain' | 'quiet' | 'button';
  /** What it is about, where the text alone does not say so. */
  about?: string;
  /** Of the page, for traffic. */
  range?: PlaceRange;
}

/** "In the monitor", or nothing. */
export type MonitorLink = (place: Place, options?: MonitorLinkOptions) => Content;

/** Read once for a page. */
export async function readMonitorLink(signOn: Pick<SignOn<Actor>, 'links'>): Promise<MonitorLink> {
  const hrefOf = await signOn.links();
  return (place, { kind = 'button', about, range } = {}) =>
    hrefOf !== null &&
    link(hrefOf(place, range), 'In the monitor', {
      kind,
      ...(about && { label: `${about} in the monitor` }),
    });
}

export const trafficPath = '/console/traffic/';

/** By id: several customers may have a server of one name. */
export const serverTrafficHref = (serverId: number): string =>
  exploreHref(trafficPath, { server: String(serverId) });

export const customerTrafficHref = (tenantId: number): string =>
  exploreHref(trafficPath, { customer: String(tenantId) });
