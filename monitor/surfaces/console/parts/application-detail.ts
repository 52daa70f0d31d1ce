/** Details of an application's row: destinations, devices, pairs (NET-2.2.2). */
import type { FastifyRequest } from 'fastify';
import { type ApplicationView, applicationViews } from '#monitor/applications/index.ts';
import { type Device, deviceKeyOf, labelDevice } from '#monitor/devices/index.ts';
import type { ApplicationDetail, ApplicationKey } from '#monitor/facts/index.ts';
import {
  type Content,
  code,
  type DataField,
  formatBytes,
  formatCount,
  html,
  link,
  withQuery,
} from '#service-kit/pages/index.ts';
import { fileHref, offerData } from '#service-kit/web/index.ts';
import { exploreHref } from './address-link.ts';

/** Id of the open row in the URL: protocol, port and name. */
export function keyText({ protocol, serverPort, name }: ApplicationKey): string {
  return `${protocol}.${serverPort ?? ''}.${name}`;
}

/** URL of the applications with this name, over the range of the present page. */
export function namedHref(request: FastifyRequest, siteId: number, name: string): string {
  const { range, from, to } = request.query as Record<string, string | undefined>;
  return withQuery(`/sites/${siteId}/applications`, { view: 'all', range: range ?? '24h', from, to, name });
}

/** Null for an invalid id. */
export function readKey(text: string | undefined): ApplicationKey | null {
  const parts = /^(\d{1,3})\.(\d{0,5})\.(.{1,300})$/s.exec(text ?? '');
  if (!parts) return null;
  const [, protocol, port, name] = parts;
  return { protocol: Number(protocol), serverPort: port === '' ? null : Number(port), name: name! };
}

type Destination = ApplicationDetail['destinations'][number];
type Pair = ApplicationDetail['pairs'][number];
interface Owner {
  label: string;
  href: string | null;
  address: string | null;
  bytes: number | null;
}

/** Lists are limited, counts are complete; each list is also a file. */
export function applicationDetail(
  request: FastifyRequest,
  siteId: number,
  { name, protocol, serverPort }: ApplicationKey,
  view: ApplicationView,
  { detail, devices }: { detail: ApplicationDetail; devices: readonly Device[] },
): Content {
  const owners = ownersOf(siteId, detail, devices);
  const { direction } = applicationViews[view];
  const filters = {
    ...{
      application: name,
      port: serverPort === null ? 'none' : String(serverPort),
      transport: String(protocol),
    },
    ...(direction !== null && { direction }),
  };
  const by = (dimension: 'server' | 'peer') =>
    link(exploreHref(request, siteId, filters, { by: dimension }), `by ${dimension}`);
  return html`<p>Explore this application ${by('server')} or ${by('peer')}.</p><div class="facets">${facet<Destination>(
    request,
    {
      id: 'destinations',
      title: 'Destinations',
      rows: detail.destinations,
      count: detail.destinationCount,
      line: (row) => code(row.address),
      fields: [{ field: 'destination', value: (row) => row.address }],
    },
  )}${facet<Owner>(request, {
    id: 'devices',
    title: detail.isFallback ? 'Devices, fallback attribution' : 'Devices',
    note: detail.isFallback
      ? 'Its connections are no longer stored. These devices come from the byte counters of the application.'
      : undefined,
    rows: owners,
    count: detail.deviceCount,
    line: (row) => (row.href ? link(row.href, row.label) : row.label),
    fields: [
      { field: 'device', value: (row) => row.label },
      { field: 'address', value: (row) => row.address },
    ],
  })}${
    detail.pairCount > 0 &&
    facet<Pair>(request, {
      id: 'connections',
      title: 'Connections',
      rows: detail.pairs,
      count: detail.pairCount,
      line: pairText,
      fields: [
        { field: 'client', value: (row) => row.client },
        { field: 'server', value: (row) => row.server },
      ],
    })
  }</div>`;
}

function ownersOf(siteId: number, detail: ApplicationDetail, devices: readonly Device[]): Owner[] {
  const byKey = new Map(devices.map((device) => [deviceKeyOf(device), device]));
  return detail.devices.map(({ deviceKey, address, bytes }) => {
    const device = deviceKey === null ? undefined : byKey.get(deviceKey);
    // A MAC of a router or sensor host owns no traffic, because it forwards for others (NET-2.2.9).
    if (device && device.foreignReason === null) {
      const href = `/sites/${siteId}/devices/${device.id}`;
      return { label: labelDevice(device).text, href, address, bytes };
    }
    const href = address ? `/sites/${siteId}/addresses/${encodeURIComponent(address)}` : null;
    return { label: address ?? 'unknown owner', href, address, bytes };
  });
}

interface Facet<Row extends { bytes: number | null }> {
  id: string;
  title: string;
  note?: string | undefined;
  rows: readonly Row[];
  /** Before the list was limited. */
  count: number;
  line: (row: Row) => Content;
  fields: DataField<Row>[];
}

function facet<Row extends { bytes: number | null }>(request: FastifyRequest, part: Facet<Row>): Content {
  const { id, title, note, rows, count, line, fields } = part;
  offerData<Row>(request, {
    id,
    rows,
    fields: [...fields, { field: 'bytes', value: (row) => row.bytes }],
    isComplete: count <= rows.length,
  });
  const shown =
    count > rows.length ? `${formatCount(rows.length)} of ${formatCount(count)}` : formatCount(count);
  const files = html`<span class="exports">${link(fileHref(request, id, 'csv'), 'CSV', { label: `${title} as CSV` })} ${link(fileHref(request, id, 'json'), 'JSON', { label: `${title} as JSON` })}</span>`;
  return html`<section><header><h2>${title}</h2><span class="hint">${shown}</span>${rows.length > 0 && files}</header>${
    note && html`<p class="hint">${note}</p>`
  }<ul>${rows.map((row) => html`<li><span>${line(row)}</span>${bytesText(row.bytes)}</li>`)}</ul></section>`;
}

/** At most five pairs, for the tooltip of a row. */
export function pairsTip(detail: ApplicationDetail): Content {
  if (detail.pairs.length === 0) return html`<p>No connections of this row are stored.</p>`;
  const more = detail.pairCount - detail.pairs.length;
  return html`<ul>${detail.pairs.map((pair) => html`<li><span>${pairText(pair)}</span>${bytesText(pair.bytes)}</li>`)}</ul>${
    more > 0 && html`<p class="hint">and ${formatCount(more)} more</p>`
  }`;
}

function pairText(pair: Pair): Content {
  return html`${code(pair.client)} → ${code(pair.server)}`;
}

/** Names that only another capture saw have no bytes of their own. */
function bytesText(bytes: number | null): Content {
  return bytes === null
    ? html`<span class="hint">name only</span>`
    : html`<span class="figure">${formatBytes(bytes)}</span>`;
}
