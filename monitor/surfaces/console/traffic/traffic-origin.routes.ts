/** `/sites/{id}/traffic/origin`: the request for the sources of a number in the site's traffic. */

import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Collection, TopAddress } from '#monitor/facts/index.ts';
import type { SiteTraffic } from '#monitor/traffic/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  badge,
  type Content,
  formatBitRate,
  formatCount,
  formatTime,
  html,
  isoTime,
  link,
  pageHeader,
  stat,
  stats,
  withQuery,
} from '#service-kit/pages/index.ts';
import { countColumn, dataTable, figureColumn, rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { addressHref, addressText } from '../parts/address-link.ts';
import { minuteText, readMinute } from '../parts/origin.ts';
import { bytesColumns } from '../parts/usage-columns.ts';

const Query = Type.Object({ from: Type.String({ maxLength: 40 }), to: Type.String({ maxLength: 40 }) });
const spanMaxSeconds = 86_400;

export function registerTrafficOrigin(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/traffic/origin',
    { schema: { params: SiteParams, querystring: Query } },
    async (request, reply) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const from = readMinute(request.query.from);
      const to = readMinute(request.query.to);
      if (from === null || to === null || to <= from || to - from > spanMaxSeconds) {
        throw new HttpError(422, {
          code: 'validation_failed',
          message:
            'Give from and to as whole minutes in UTC, such as 2026-11-21T10:05Z, at most a day apart.',
        });
      }
      const isMinute = to - from === 60;
      const [traffic, collection, addresses] = await Promise.all([
        deps.traffic.readSiteTraffic(site.id, from * 1000, to * 1000, 60),
        deps.traffic.readCollection(site.id, from * 1000, to * 1000),
        isMinute
          ? deps.traffic.listTopAddresses(site.id, from * 1000, to * 1000, rowsLimit(request, addressesShown))
          : null,
      ]);
      const known = { siteId: site.id, from, to, traffic, collection, addresses };
      const content = trafficOriginPage(request, known);
      return sendConsolePage(reply, { title: 'Sources', site: { site, page: 'traffic' } }, content);
    },
  );
}

/**
 * The page with the sources of a number in the site's traffic. A minute is the sum of its addresses, each from one
 * capture; a longer step is the mean of its minutes.
 */
const addressesShown = 200;

interface TrafficOriginPage {
  siteId: number;
  /** Seconds since 1970, the end excluded. */
  from: number;
  to: number;
  traffic: SiteTraffic;
  collection: Collection;
  /** Of a single minute; null for a longer step. */
  addresses: readonly TopAddress[] | null;
}

function trafficOriginPage(request: FastifyRequest, page: TrafficOriginPage): Content {
  const { siteId, from, to, traffic, collection, addresses } = page;
  const isMinute = addresses !== null;
  return [
    pageHeader({
      title: `Sources for ${formatTime(from * 1000)}${isMinute ? '' : ` to ${formatTime(to * 1000).slice(11)}`}`,
      state: stateOf(traffic, collection, isMinute),
      actions: link(`/sites/${siteId}/traffic`, 'Traffic', { kind: 'button' }),
    }),
    collectionStats(collection),
    isMinute ? addressTable(request, siteId, from, addresses) : minuteTable(request, siteId, traffic),
  ];
}

function stateOf(traffic: SiteTraffic, collection: Collection, isMinute: boolean) {
  const observed = traffic.minutes.reduce((sum, minutes) => sum + minutes, 0);
  if (observed === 0) return { tone: 'warn', text: 'No capture: a gap, not a zero.' } as const;
  const lost = collection.kernelDropped + collection.parserDropped;
  const how = isMinute
    ? 'The sum of its addresses, each from the capture that saw the most'
    : `The mean of ${formatCount(observed)} observed minutes; gaps do not count`;
  if (lost === 0) return { tone: 'good', text: `${how}.` } as const;
  return {
    tone: 'warn',
    text: `${how}. ${formatCount(lost)} packets were lost and are not estimated.`,
  } as const;
}

function collectionStats(collection: Collection) {
  const source = 'all captures together';
  return stats(
    stat({ label: 'Capture minutes', value: formatCount(collection.captureMinutes), source }),
    stat({ label: 'Packets', value: formatCount(collection.packets), source }),
    stat({
      label: 'Lost before the sensor',
      value: formatCount(collection.kernelDropped),
      source: 'dropped by the kernel',
      tone: collection.kernelDropped > 0 ? 'warn' : undefined,
    }),
    stat({
      label: 'Not parsed',
      value: formatCount(collection.parserDropped),
      source: 'makes applications partial',
      tone: collection.parserDropped > 0 ? 'warn' : undefined,
    }),
  );
}

function addressTable(request: FastifyRequest, siteId: number, minute: number, rows: readonly TopAddress[]) {
  const at = minuteText(minute);
  const around = { range: 'custom', from: minuteText(minute - 1800), to: minuteText(minute + 1800), at };
  return dataTable<TopAddress>(request, {
    id: 'addresses',
    caption: 'Addresses of this minute',
    card: { line: ['in', 'out', 'packets'] },
    refreshSeconds: 60,
    rows,
    columns: [
      {
        key: 'address',
        header: 'Address',
        cell: (row) =>
          link(`${addressHref(siteId, row, around)}#origin`, addressText(row), {
            label: `${row.address}, the captures that counted it`,
          }),
        value: (row) => row.address,
      },
      ...bytesColumns,
      countColumn('packets', 'Packets', (row) => row.packets),
    ],
    pages:
      rows.length === addressesShown
        ? { label: `Showing the ${addressesShown} largest. Export for the full list` }
        : undefined,
    empty: { title: 'No address', text: 'No capture saw a local address in this minute.' },
  });
}

interface Minute {
  timeMs: number;
  inBps: number | null;
  outBps: number | null;
  addresses: number | null;
}

function minuteTable(request: FastifyRequest, siteId: number, traffic: SiteTraffic) {
  const rows = traffic.timesMs
    .map((timeMs, index) => ({
      timeMs,
      inBps: traffic.inBps[index] ?? null,
      outBps: traffic.outBps[index] ?? null,
      addresses: traffic.addresses[index] ?? null,
    }))
    .reverse();
  const inside = (row: Minute) =>
    withQuery(`/sites/${siteId}/traffic/origin`, {
      from: minuteText(row.timeMs / 1000),
      to: minuteText(row.timeMs / 1000 + 60),
    });
  return dataTable<Minute>(request, {
    id: 'minutes',
    caption: 'Minutes of this step',
    card: { line: ['in', 'out'] },
    refreshSeconds: 60,
    rows,
    columns: [
      {
        key: 'minute',
        header: 'Minute',
        cell: (row) => link(inside(row), formatTime(row.timeMs)),
        value: (row) => isoTime(row.timeMs),
      },
      figureColumn(
        'in',
        'In',
        (row) => row.inBps,
        (inBps) => (inBps === null ? badge('warn', 'gap') : formatBitRate(inBps)),
        { field: 'in_bps' },
      ),
      figureColumn(
        'out',
        'Out',
        (row) => row.outBps,
        (outBps) => (outBps === null ? badge('warn', 'gap') : formatBitRate(outBps)),
        { field: 'out_bps' },
      ),
      figureColumn(
        'addresses',
        'Addresses',
        (row) => row.addresses,
        (addresses) =>
          addresses === null ? html`<span class="unknown">unknown</span>` : formatCount(addresses),
      ),
    ],
    empty: { title: 'No minutes', text: 'This step is in the future.' },
  });
}
