/** The page of a site's applications, with the collection that the figures come from. */
import type { FastifyRequest } from 'fastify';
import {
  type ApplicationView,
  applicationViews,
  type CollectionNotices,
} from '#monitor/applications/index.ts';
import type { Device } from '#monitor/devices/index.ts';
import type { ApplicationDetail, ApplicationKey, ApplicationUse } from '#monitor/facts/index.ts';
import {
  type ChartData,
  type Content,
  chart,
  html,
  link,
  pageHeader,
  type Range,
  rangePicker,
  refreshing,
  section,
  tabs,
  withQuery,
} from '#service-kit/pages/index.ts';
import { applicationDetail, keyText } from '../parts/application-detail.ts';
import { type PortLine, portTable } from '../port-scans/scan-tables.ts';
import { applicationTable } from './application-table.ts';
import { attributionStats, collectionBanners, collectionState } from './collection-banners.ts';

/** The page stays below its bound of bytes. */
const openPortsShown = 20;

/** The open row. */
export interface Unfolded {
  key: ApplicationKey;
  detail: ApplicationDetail;
  devices: readonly Device[];
}

export interface ApplicationsPage {
  siteId: number;
  range: Range;
  view: ApplicationView;
  use: ApplicationUse;
  /** Null: not a stored ranking. */
  rankedAtMs: number | null;
  /** Gaps in the range. */
  gaps: number;
  notices: CollectionNotices;
  data: ChartData;
  unfolded: Unfolded | null;
  /** Open ports of the applications that servers host; null in views of other traffic. */
  openPorts: readonly PortLine[] | null;
  nowMs: number;
}

export function applicationsPage(request: FastifyRequest, page: ApplicationsPage): Content {
  const { siteId, use, notices, rankedAtMs, nowMs } = page;
  const unfolded = page.unfolded && {
    key: keyText(page.unfolded.key),
    content: applicationDetail(request, siteId, page.unfolded.key, page.view, page.unfolded),
  };
  return [
    pageHeader({
      title: 'Applications',
      state: collectionState(notices, page.gaps),
      actions: rangePicker({ url: withQuery(request.url, { open: undefined }), range: page.range, nowMs }),
    }),
    tabs(
      'Views',
      (Object.keys(applicationViews) as ApplicationView[]).map((name) => ({
        label: applicationViews[name].label,
        href: withQuery(request.url, { view: name, open: undefined }),
        current: name === page.view,
      })),
    ),
    refreshing({ id: 'applications', url: request.url, everySeconds: 60 }, [
      collectionBanners(notices),
      attributionStats(use, notices),
      applicationChart(request.url, siteId, page.data, use),
      applicationTable(request, siteId, use, { nowMs, rankedAtMs, unfolded }),
      page.openPorts && openPortSection(request, siteId, page.openPorts, nowMs),
    ]),
  ];
}

/** Services that only scans know stay out of this page (NET-2.7.12). */
function openPortSection(request: FastifyRequest, siteId: number, rows: readonly PortLine[], nowMs: number) {
  return section(
    {
      id: 'open-ports',
      title: 'Open ports of these applications',
      description: html`What port scans found on ports with observed traffic of the last 24 hours. ${link(`/sites/${siteId}/port-scans`, 'All open ports')}`,
    },
    portTable(
      request,
      { id: 'open-ports', caption: 'Open ports of applications', rows, shown: openPortsShown, siteId, nowMs },
      { title: 'None', text: 'No scan found an open port that serves an observed application.' },
    ),
  );
}

function applicationChart(url: string, siteId: number, data: ChartData, use: ApplicationUse) {
  if (use.rows.length === 0) return '';
  const query = withQuery(url, { open: undefined }).split('?')[1];
  return chart({
    id: 'site-applications',
    title: 'Largest applications',
    unit: 'bit/s',
    data,
    dataUrl: `/sites/${siteId}/applications.json${query ? `?${query}` : ''}`,
    refreshSeconds: 60,
    canZoom: true,
    source: 'both directions, each minute from one capture; gaps stay empty',
  });
}
