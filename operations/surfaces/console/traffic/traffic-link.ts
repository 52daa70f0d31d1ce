/** Links from other pages of the console to what the explorer knows of a server or a customer. */
import { exploreHref } from '#service-kit/explorer/index.ts';

export const trafficPath = '/console/traffic/';

/** By id: several customers may have a server of one name. */
export const serverTrafficHref = (serverId: number): string =>
  exploreHref(trafficPath, { server: String(serverId) });

export const customerTrafficHref = (tenantId: number): string =>
  exploreHref(trafficPath, { customer: String(tenantId) });
