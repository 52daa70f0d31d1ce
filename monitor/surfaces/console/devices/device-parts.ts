/** Parts of a device's page. */

import type { FastifyRequest } from 'fastify';
import { keptText } from '#contracts/retention.ts';
import {
  type Claim,
  type Conflict,
  type Device,
  type DeviceLabel,
  labelDevice,
} from '#monitor/devices/index.ts';
import type { MonitorEvent } from '#monitor/events/index.ts';
import {
  badge,
  type Content,
  code,
  definitionList,
  formatAge,
  html,
  isoTime,
  link,
  moment,
  type Tone,
} from '#service-kit/pages/index.ts';
import {
  dataTable,
  figureColumn,
  linkColumn,
  momentColumn,
  pagedRows,
  textColumn,
} from '#service-kit/web/index.ts';
import { addressHref, addressText } from '../parts/address-link.ts';
import { namedHref } from '../parts/application-detail.ts';
import { eventName } from '../parts/words.ts';

export const labelSources: Readonly<Record<DeviceLabel['source'], string>> = {
  operator: 'named here',
  vm: 'server',
  manufacturer: 'maker',
  mac: 'MAC',
  randomized: 'randomized',
};

const foreignWords: Readonly<
  Record<NonNullable<Device['foreignReason']>, { badge: string; sentence: string }>
> = {
  sensor: {
    badge: 'sensor host',
    sentence:
      'It belongs to a host with a sensor, which forwards the traffic of its guests. No traffic is attributed to it.',
  },
  router: {
    badge: 'router',
    sentence: 'It is a router, which forwards the traffic of others. No traffic is attributed to it.',
  },
  many_addresses: {
    badge: 'forwards',
    sentence:
      'It uses more addresses than a host has, so it owns none of them. No traffic is attributed to it.',
  },
};

/** Text for a device's state, because colour alone is not enough. */
export function stateBadge(device: Device, claims: readonly Claim[]): Content {
  return [
    device.archivedAtMs === null ? badge('good', 'live') : badge('neutral', 'archived'),
    device.foreignReason !== null && html` ${badge('info', foreignWords[device.foreignReason].badge)}`,
    claims.some((claim) => claim.isInConflict) && html` ${badge('warn', 'conflict')}`,
  ];
}

/** A one-sentence summary of a device. */
export function deviceState(
  device: Device,
  claims: readonly Claim[],
  nowMs: number,
): { tone: Tone; text: string } {
  const seen = `Last seen ${formatAge(device.lastSeenMs, nowMs)}.`;
  if (device.archivedAtMs !== null) {
    const since = formatAge(device.archivedAtMs, nowMs);
    return { tone: 'neutral', text: `Archived ${since}: its server is gone. ${seen}` };
  }
  const contested = claims.filter((claim) => claim.isInConflict).map((claim) => claim.address);
  if (contested.length > 0)
    return { tone: 'warn', text: `Another MAC claims ${contested.join(', ')} as well. ${seen}` };
  if (device.foreignReason !== null)
    return { tone: 'info', text: `${foreignWords[device.foreignReason].sentence} ${seen}` };
  return { tone: 'good', text: seen };
}

/** The identity of the device, and the name from each source; the used one is marked. */
export function identity(device: Device, nowMs: number): Content {
  const { match } = device;
  const { source } = labelDevice(device);
  const used = (of: DeviceLabel['source']) => source === of && html` ${badge('info', 'shown')}`;
  const server = match
    ? html`${match.serverName} (server ${match.serverId}, cluster ${match.clusterId}), confirmed ${moment(match.matchedAtMs, nowMs)}${
        match.endedAtMs === null ? '' : html`, gone ${moment(match.endedAtMs, nowMs)}`
      }${used('vm')}`
    : html`<span class="hint">no server in the inventory has this MAC</span>`;
  const none = (text: string) => html`<span class="hint">${text}</span>`;
  return definitionList([
    {
      term: 'Name given here',
      value: device.operatorName ? html`${device.operatorName}${used('operator')}` : none('none'),
    },
    { term: 'Server', value: server },
    {
      term: 'Maker',
      value: device.isRandomized
        ? none('none: the MAC is randomized')
        : device.manufacturer
          ? html`${device.manufacturer}${used('manufacturer')}`
          : none('unknown; resolve_mac_vendors can look it up in a registry'),
    },
    {
      term: 'MAC',
      value: html`${code(device.mac, true)}${device.isRandomized ? html` ${badge('neutral', 'randomized')}` : ''}${used('mac')}${used('randomized')}`,
    },
    { term: 'Segment', value: code(device.segment) },
    { term: 'First seen', value: moment(device.firstSeenMs, nowMs) },
    { term: 'Last seen', value: moment(device.lastSeenMs, nowMs) },
    ...(device.archivedAtMs === null
      ? []
      : [{ term: 'Archived', value: moment(device.archivedAtMs, nowMs) }]),
  ]);
}

const endings = { silence: 'silence', owner: 'another owner', archive: 'its server was destroyed' } as const;

/** Owned addresses over time: the binding history. */
const bindingsShown = 50;

export function bindingTable(request: FastifyRequest, siteId: number, rows: readonly Claim[], nowMs: number) {
  return dataTable<Claim>(request, {
    ...pagedRows(request, 'addresses', rows, bindingsShown),
    caption: 'Addresses',
    card: { line: ['state', 'last'] },
    columns: [
      {
        key: 'address',
        header: 'Address',
        cell: (row) => link(addressHref(siteId, row), addressText(row)),
        value: (row) => row.address,
      },
      {
        key: 'state',
        header: 'State',
        cell: (row) =>
          row.endedAtMs !== null
            ? badge('neutral', 'past')
            : row.isInConflict
              ? badge('warn', 'conflict')
              : badge('good', 'owned'),
        value: (row) => (row.endedAtMs !== null ? 'past' : row.isInConflict ? 'conflict' : 'owned'),
      },
      momentColumn('first', 'From', (row) => row.firstSeenMs, nowMs, { field: 'first_seen' }),
      momentColumn('last', 'Last seen', (row) => row.lastSeenMs, nowMs, { field: 'last_seen' }),
      textColumn('ended', 'Ended by', (row) => row.endedBy, {
        show: (endedBy) => (endedBy === null ? html`<span class="hint">–</span>` : endings[endedBy]),
      }),
    ],
    empty: { title: 'No addresses', text: `This device had no address in the last ${keptText('bindings')}.` },
  });
}

export function conflictTable(
  request: FastifyRequest,
  rows: readonly Conflict[],
  mac: string,
  nowMs: number,
) {
  return dataTable<Conflict>(request, {
    id: 'conflicts',
    caption: 'Conflicts',
    card: { line: ['others', 'opened'] },
    rows,
    rowTone: (row) => (row.resolvedAtMs === null ? 'warn' : undefined),
    columns: [
      { key: 'address', header: 'Address', cell: (row) => code(row.address), value: (row) => row.address },
      {
        key: 'others',
        header: 'Also claimed by',
        cell: (row) => row.macs.filter((one) => one !== mac).map((one) => html`${code(one)} `),
        value: (row) => row.macs.filter((one) => one !== mac).join(' '),
      },
      momentColumn('opened', 'Opened', (row) => row.openedAtMs, nowMs),
      {
        key: 'resolved',
        header: 'Resolved',
        cell: (row) => (row.resolvedAtMs === null ? badge('warn', 'open') : moment(row.resolvedAtMs, nowMs)),
        value: (row) => isoTime(row.resolvedAtMs),
      },
    ],
    empty: {
      title: 'No conflicts',
      text: 'No other MAC claimed an address of this device at the same time.',
    },
  });
}

/** An application of a device's addresses, summed up. */
export interface DeviceApplication {
  name: string;
  direction: 'outbound' | 'inbound';
  inboundBytes: number;
  outboundBytes: number;
}

export function applicationTable(
  request: FastifyRequest,
  siteId: number,
  rows: readonly DeviceApplication[],
  bytes: (count: number) => string,
) {
  return dataTable<DeviceApplication>(request, {
    id: 'applications',
    caption: 'Applications',
    card: { line: ['in', 'out'] },
    rows,
    columns: [
      linkColumn('name', 'Application', (row) => [row.name, namedHref(request, siteId, row.name)]),
      textColumn('use', 'Use', (row) => row.direction, {
        show: (direction) => (direction === 'outbound' ? 'uses it' : 'hosts it'),
      }),
      figureColumn('in', 'In', (row) => row.inboundBytes, bytes, { field: 'inbound_bytes' }),
      figureColumn('out', 'Out', (row) => row.outboundBytes, bytes, { field: 'outbound_bytes' }),
    ],
    empty: {
      title: 'No application seen',
      text: 'Internet applications of its addresses appear here after one or two minutes.',
    },
  });
}

export function deviceEventTable(request: FastifyRequest, rows: readonly MonitorEvent[], nowMs: number) {
  return dataTable<MonitorEvent>(request, {
    id: 'events',
    caption: 'Events',
    card: { title: 'kind', line: ['at'] },
    isStacked: true,
    rows,
    columns: [
      momentColumn('at', 'When', (row) => row.occurredAtMs, nowMs),
      textColumn('kind', 'Kind', (row) => row.kind, { show: eventName }),
      textColumn('address', 'Address', (row) => String(row.details.address ?? ''), { show: code }),
    ],
    empty: {
      title: 'No events',
      text: `Conflicts over its addresses appear here for ${keptText('bindings')}.`,
    },
  });
}
