/** Results of the search as lines with links, for the page and for the suggestions. */
import type { AddressPlace } from '#monitor/devices/index.ts';
import type { Found } from '#monitor/search/index.ts';
import { type Tone, withQuery } from '#service-kit/pages/index.ts';
import { addressHref } from '../parts/address-link.ts';

export type Kind = 'Addresses' | 'Devices' | 'Servers' | 'Applications' | 'Sensors' | 'Sites';

/** One result. */
export interface Hit {
  kind: Kind;
  text: string;
  /** Addresses and MACs are shown in monospace. */
  isCode: boolean;
  href: string;
  site: string | null;
  detail: string;
  /** Good for present states. */
  state: { tone: Tone; text: string } | null;
}

/** Best matches first: exact addresses, then devices and servers, then names. */
export function hitsOf(found: Found): Hit[] {
  return [
    ...found.addresses.map(ownedAddress),
    ...localAddresses(found),
    ...found.devices.map(device),
    ...found.machines.map(server),
    ...found.applications.map(application),
    ...found.sensors.map(sensor),
    ...found.sites.map(site),
  ];
}

function ownedAddress(hit: Found['addresses'][number]): Hit {
  const state =
    hit.endedAtMs === null
      ? ({ tone: 'good', text: 'owned now' } as const)
      : ({ tone: 'neutral', text: 'former owner' } as const);
  return address(hit.siteId, hit, hit.siteName, hit.mac, state);
}

/** The address that was searched, at sites that have it in a local prefix and know no owner. */
function localAddresses(found: Found): Hit[] {
  const owned = new Set(found.addresses.map((hit) => hit.siteId));
  const state = { tone: 'info', text: 'in a local prefix' } as const;
  return found.localSites
    .filter(({ siteId }) => !owned.has(siteId))
    .map(({ siteId, siteName }) => {
      const place = { address: found.question.address!, segment: '' };
      return address(siteId, place, siteName, 'no owner is known', state);
    });
}

function device(hit: Found['devices'][number]): Hit {
  return {
    kind: 'Devices',
    text: hit.name ?? hit.mac,
    isCode: hit.name === null,
    href: `/sites/${hit.siteId}/devices/${hit.deviceId}`,
    site: hit.siteName,
    detail: hit.name === null ? `on ${hit.segment}` : `${hit.mac} on ${hit.segment}`,
    state: hit.isArchived ? { tone: 'neutral', text: 'archived' } : { tone: 'good', text: 'live' },
  };
}

function server(hit: Found['machines'][number]): Hit {
  const site = hit.siteId ? `/sites/${hit.siteId}/devices` : '/operations#clusters';
  const tone = hit.state === 'running' ? 'good' : 'neutral';
  return {
    kind: 'Servers',
    text: hit.name,
    isCode: false,
    href: hit.siteId && hit.deviceId ? `${site}/${hit.deviceId}` : site,
    site: hit.siteName,
    detail: `server ${hit.vmId}, cluster ${hit.clusterId}${hit.deviceId ? '' : ', no device seen'}`,
    state: hit.isRetired ? { tone: 'neutral', text: 'destroyed' } : { tone, text: hit.state },
  };
}
function application(hit: Found['applications'][number]): Hit {
  return {
    kind: 'Applications',
    text: hit.name,
    isCode: false,
    href: withQuery(`/sites/${hit.siteId}/applications`, { view: 'all', range: '24h', name: hit.name }),
    site: hit.siteName,
    detail: '',
    state: null,
  };
}

function sensor(hit: Found['sensors'][number]): Hit {
  return {
    kind: 'Sensors',
    text: hit.hostName,
    isCode: false,
    href: `/sites/${hit.siteId}/sensors`,
    site: hit.siteName,
    detail: hit.node,
    state: null,
  };
}

function site(hit: Found['sites'][number]): Hit {
  return {
    kind: 'Sites',
    text: hit.siteName,
    isCode: false,
    href: `/sites/${hit.siteId}/traffic`,
    site: null,
    detail: '',
    state: null,
  };
}

function address(siteId: number, place: AddressPlace, site: string, owner: string, state: Hit['state']): Hit {
  const href = addressHref(siteId, place);
  const text = place.address;
  const detail = place.segment === '' ? owner : `${owner} on ${place.segment}`;
  return { kind: 'Addresses', text, isCode: true, href, site, detail, state };
}
