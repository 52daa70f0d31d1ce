/** The page of a site's potential vulnerabilities: how many of each severity, by server and by record. */
import type { FastifyRequest } from 'fastify';
import type { Site } from '#monitor/sites/index.ts';
import type { AssessmentTotals, TouchingCve } from '#monitor/vulnerabilities/index.ts';
import {
  banner,
  type Content,
  formatAge,
  formatCount,
  html,
  link,
  pageHeader,
  refreshing,
  severityBar,
  stat,
  stats,
  type Tone,
  tabs,
} from '#service-kit/pages/index.ts';
import { nvdNotice } from '../parts/nvd-notice.ts';
import { activeOf, cveTable, type ListPart, type ServerLine, serverTable } from './counted-tables.ts';
import { activeText, findingMeaning, plural } from './finding-text.ts';
import { findingsHref } from './paths.ts';

export interface VulnerabilitiesPage {
  site: Site;
  totals: AssessmentTotals;
  /** Of the copy of the database. */
  problem: string | null;
  /** One of the two views. */
  list: { by: 'server'; part: ListPart<ServerLine> } | { by: 'cve'; part: ListPart<TouchingCve> };
  /** Titles of products by their keys. */
  titles: ReadonlyMap<string, string>;
  nowMs: number;
}

export function vulnerabilitiesPage(request: FastifyRequest, page: VulnerabilitiesPage): Content {
  const { site, totals, problem, list, titles, nowMs } = page;
  const path = findingsHref(site.id);
  return [
    pageHeader({
      title: 'Potential vulnerabilities',
      state: stateOf(totals),
      actions: link('/system/vulnerability-database', 'Vulnerability database', { kind: 'button' }),
    }),
    problem !== null && banner({ tone: 'warn', title: problem }),
    refreshing({ id: 'findings', url: request.url, everySeconds: 30 }, [
      activeOf(totals) > 0 && severityBar({ label: 'Active potential vulnerabilities', counts: totals }),
      totals.services > 0 && figures(totals, nowMs),
      tabs('Views', [
        { label: 'By server', href: path, current: list.by === 'server' },
        { label: 'By CVE', href: `${path}?view=cves`, current: list.by === 'cve' },
      ]),
      list.by === 'server'
        ? serverTable(request, site.id, list.part, nowMs)
        : cveTable(request, site.id, list.part, titles),
    ]),
    html`<p class="hint">${findingMeaning} ${nvdNotice}</p>`,
  ];
}

function stateOf(totals: AssessmentTotals): { tone: Tone; text: string } {
  const active = activeOf(totals);
  const { servers, affected, waiting, critical, high } = totals;
  if (servers === 0) return { tone: 'info', text: 'No scan found an open port yet.' };
  if (active === 0)
    return waiting === servers
      ? { tone: 'info', text: 'Services are being assessed.' }
      : { tone: 'good', text: 'No active potential vulnerability.' };
  return {
    tone: critical + high > 0 ? 'warn' : 'info',
    text: `${activeText(totals, active)}, on ${plural(affected, 'server', 'servers')}.`,
  };
}

function figures(totals: AssessmentTotals, nowMs: number): Content {
  const { servers, affected, services, unable, ignored, waiting, checkedAtMs } = totals;
  return stats(
    stat({
      label: 'Servers with findings',
      value: formatCount(affected),
      source: `of ${plural(servers, 'server', 'servers')} with open ports`,
    }),
    stat({ label: 'Ignored', value: formatCount(ignored), source: 'by operators, not among the active' }),
    stat({
      label: 'Unable to assess',
      value: formatCount(unable),
      source: `of ${plural(services, 'service', 'services')}`,
    }),
    stat({
      label: 'Oldest assessment',
      value: checkedAtMs === null ? undefined : formatAge(checkedAtMs, nowMs),
      source: waiting === 0 ? 'all are up to date' : `${plural(waiting, 'server waits', 'servers wait')}`,
    }),
  );
}
