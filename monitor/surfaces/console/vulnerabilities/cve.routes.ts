/** `/sites/{id}/vulnerabilities/cves/{cve}`: the request for one record of the database and what it touches. */
import { Type } from 'typebox';
import type { Finding, TouchedService } from '#monitor/vulnerabilities/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  badge,
  type Content,
  code,
  definitionList,
  formatTime,
  html,
  isoTime,
  link,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { readList, textColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { notFound, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { addressHref } from '../parts/address-link.ts';
import { nvdNotice } from '../parts/nvd-notice.ts';
import { nameAll } from '../port-scans/port-lines.ts';
import type { Shown } from './counted-tables.ts';
import { nvdLink, portText } from './finding-tables.ts';
import {
  cveHref,
  doubtText,
  evidenceAge,
  findingMeaning,
  ratingBadge,
  serverHref,
  softwareText,
} from './finding-text.ts';

const Params = Type.Object({ ...SiteParams.properties, cve: Type.String({ maxLength: 40 }) });
const cveShape = /^CVE-[0-9]{4}-[0-9]{4,19}$/;

export function registerCve(app: App, deps: ConsoleDeps): void {
  app.get(
    '/sites/:siteId/vulnerabilities/cves/:cve',
    { schema: { params: Params } },
    async (request, reply) => {
      const { siteId, cve } = request.params;
      const site = await siteOf(deps.sites, siteId);
      const finding = cveShape.test(cve) ? await deps.vulnerabilities.findFinding(cve) : null;
      if (!finding) throw notFound('This record touches no service that is known.');
      const touched = await readList(request, {
        ...{ path: cveHref(site.id, cve), filters: [], shown: 50 },
        ...touchedList(site.id, deps.clock.nowMs()),
        async read(_, { skip: offset, limit }): Promise<TouchedLine[]> {
          const services = await deps.vulnerabilities.listTouched(cve, site.id, { offset, limit });
          const names = await nameAll(deps, services);
          return services.map((service) => ({ service, server: names(service) }));
        },
      });
      return sendConsolePage(
        reply,
        { title: cve, site: { site, page: 'vulnerabilities' } },
        cvePage(finding, touched.table),
      );
    },
  );
}

interface TouchedLine {
  service: TouchedService;
  server: string;
}

/** The page of one record of the vulnerability database: what it says, and which services it touches. */
function cvePage(finding: Finding, touched: Content): Content {
  return [
    pageHeader({
      title: finding.cve,
      state: {
        tone: finding.isKnownExploited ? 'bad' : 'info',
        text: finding.isKnownExploited ? 'Known to be exploited (CISA).' : 'Potential vulnerability.',
      },
    }),
    definitionList(factsOf(finding)),
    section({ id: 'touched', title: 'Services', description: findingMeaning }, touched),
    html`<p class="hint">${nvdNotice}</p>`,
  ];
}

function factsOf(finding: Finding) {
  const { severity, summary, publishedAt, modifiedAt, isDisputed } = finding;
  const doubt = doubtText(finding);
  return [
    { term: 'Summary', value: summary || 'The record has none.' },
    {
      term: 'Severity',
      value: severity
        ? [ratingBadge(finding), html` <span class="hint">CVSS ${severity.version}</span>`]
        : 'not rated yet',
    },
    ...(severity?.vector ? [{ term: 'Vector', value: code(severity.vector) }] : []),
    ...(isDisputed
      ? [{ term: 'Disputed', value: 'The maker or others do not agree with this record.' }]
      : []),
    ...(doubt === '' ? [] : [{ term: 'Incomplete', value: doubt }]),
    { term: 'Published', value: dayOf(publishedAt) },
    { term: 'Last modified', value: dayOf(modifiedAt) },
    { term: 'Record', value: html`${nvdLink(finding.cve)} at the NVD` },
  ];
}

/** Times of the database are UTC without saying so. */
function dayOf(text: string): string {
  const ms = Date.parse(/(Z|[+-]\d\d:?\d\d)$/.test(text) ? text : `${text}Z`);
  return Number.isNaN(ms) ? 'unknown' : formatTime(ms, 'day');
}

const touchedList = (siteId: number, nowMs: number) =>
  ({
    ...{ id: 'touched', caption: 'Services that it touches', isStacked: true },
    card: { line: ['port', 'software', 'state'] },
    columns: [
      {
        key: 'server',
        header: 'Server',
        cell: ({ service, server }) => link(serverHref(siteId, service), server),
        value: ({ server }) => server,
      },
      textColumn('port', 'Port', ({ service }) => portText(service), { show: code }),
      {
        key: 'address',
        header: 'Address',
        cell: ({ service: { address } }) => link(addressHref(siteId, { address, segment: '' }), address),
        value: ({ service }) => service.address,
      },
      textColumn('software', 'Software', ({ service }) => softwareText(service), { kind: 'prose' }),
      {
        key: 'state',
        header: 'State',
        cell: ({ service }) => (service.isIgnored ? badge('neutral', 'ignored') : badge('warn', 'active')),
        value: ({ service }) => (service.isIgnored ? 'ignored' : 'active'),
      },
      {
        key: 'seen',
        header: 'Seen',
        kind: 'figure',
        cell: ({ service }) => evidenceAge(service, nowMs),
        field: 'observed_at',
        value: ({ service }) => isoTime(service.observedAtMs),
      },
    ],
    fields: [
      { field: 'cluster_id', value: ({ service }) => service.clusterId },
      { field: 'vm_id', value: ({ service }) => service.serverId },
      { field: 'scan_id', value: ({ service }) => service.scanId },
    ],
    empty: {
      title: 'It touches no service of this site',
      text: 'Assessed services in its range appear here.',
    },
  }) satisfies Shown<TouchedLine>;
