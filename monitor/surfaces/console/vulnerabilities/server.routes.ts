/** `/sites/{id}/vulnerabilities/servers/{cluster}/{server}`: one server's findings, and what operators ignore of them. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { unableRows } from '#contracts/findings.ts';
import { keptText } from '#contracts/retention.ts';
import { Id } from '#contracts/scalars.ts';
import type { Site } from '#monitor/sites/index.ts';
import type { Ignore, ServerWithServices, ServiceWithFindings } from '#monitor/vulnerabilities/index.ts';
import { ignoreReasonMax } from '#monitor/vulnerabilities/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import {
  age,
  badge,
  banner,
  type Content,
  code,
  definitionList,
  field,
  form,
  formatAge,
  formatCount,
  hiddenField,
  html,
  isoTime,
  link,
  pageHeader,
  section,
  severityBar,
  stat,
  stats,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { type DataColumn, dataTable, pagedRows, textColumn } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { DoneQuery, faultText, notFound, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import type { Viewer } from '../guard.ts';
import { viewerOf } from '../guard.ts';
import { type OperationsLink, readOperationsLink } from '../parts/address-link.ts';
import { nvdNotice } from '../parts/nvd-notice.ts';
import { nameAll } from '../port-scans/port-lines.ts';
import { activeOf } from './counted-tables.ts';
import {
  addressColumn,
  apartLines,
  apartTable,
  type FindingLine,
  findingLines,
  findingTable,
  ignoredTable,
  nvdLink,
  pastIgnoreTable,
  portText,
  rowsShown,
  type ServerTables,
} from './finding-tables.ts';
import {
  activeText,
  byTracker,
  evidenceAge,
  findingMeaning,
  notConfirmed,
  plural,
  ratingBadge,
  remarks,
  serverHref,
  softwareText,
} from './finding-text.ts';

const ServerParams = Type.Object({ ...SiteParams.properties, clusterId: Id, serverId: Id });
type ServerParams = Static<typeof ServerParams>;
/** As forms send it. */
const FindingFields = {
  address: Type.String({ maxLength: 64 }),
  transport: Type.String({ maxLength: 8 }),
  port: Type.String({ pattern: '^[1-9][0-9]{0,4}$' }),
  fingerprint: Type.String({ maxLength: 128 }),
  cve: Type.String({ maxLength: 40 }),
};
const IgnoreQuery = Type.Object(FindingFields);
type SentFinding = Static<typeof IgnoreQuery>;
const IgnoreBody = Type.Object({
  ...FindingFields,
  reason: Type.String({ maxLength: 4_000 }),
  until: Type.Optional(Type.String({ maxLength: 40 })),
});

const path = '/sites/:siteId/vulnerabilities/servers/:clusterId/:serverId';
const done: Readonly<Record<string, string>> = {
  ignored: 'Finding ignored.',
  ended: 'The finding is active again.',
};

export function registerServerFindings(app: App, deps: ConsoleDeps): void {
  const Query = Type.Object({
    open: Type.Optional(Type.String({ maxLength: 100 })),
    ...DoneQuery.properties,
  });
  app.get(path, { schema: { params: ServerParams, querystring: Query } }, async (request, reply) => {
    const { site, name, found } = await findServer(deps, request.params);
    const { open } = request.query;
    return sendConsolePage(
      reply,
      { title: name, site: { site, page: 'vulnerabilities' }, done },
      serverFindingsPage(request, {
        ...{ site, name, found, open, inOperations: await readOperationsLink(deps.signOn) },
        ...{ viewer: viewerOf(request), nowMs: deps.clock.nowMs() },
      }),
    );
  });
  registerIgnores(app, deps);
}

function registerIgnores(app: App, deps: ConsoleDeps): void {
  app.get(
    `${path}/ignore`,
    { schema: { params: ServerParams, querystring: IgnoreQuery } },
    async (request, reply) => {
      if (!viewerOf(request).canChange)
        throw new HttpError(403, { code: 'read_only', message: 'Your role is read-only.' });
      return showForm(deps, reply, request.params, request.query);
    },
  );

  app.post(
    `${path}/ignore`,
    { schema: { params: ServerParams, body: IgnoreBody } },
    async (request, reply) => {
      const { siteId, clusterId, serverId } = request.params;
      const { reason, until = '', ...finding } = request.body;
      // The server of the path must be of the site.
      await findServer(deps, request.params);
      try {
        const untilMs = readUntil(until);
        const ignored = { ...finding, port: Number(finding.port), clusterId, serverId, reason, untilMs };
        await deps.vulnerabilities.ignore(viewerOf(request).actor, ignored);
      } catch (error) {
        const codes = ['vulnerabilities.invalid', 'vulnerabilities.no_finding', 'vulnerabilities.ignored'];
        const message = faultText(error, ...codes);
        return showForm(deps, reply, request.params, finding, { message, reason, until });
      }
      return reply.redirect(`${serverHref(siteId, { clusterId, serverId })}?done=ignored#ignored`, 303);
    },
  );

  app.post(
    `${path}/ignores/:ignoreId/end`,
    { schema: { params: Type.Object({ ...ServerParams.properties, ignoreId: Id }) } },
    async (request, reply) => {
      const { siteId, clusterId, serverId, ignoreId } = request.params;
      const { found } = await findServer(deps, request.params);
      const isOwn = found.ignores.some(({ id }) => id === ignoreId);
      if (!isOwn || !(await deps.vulnerabilities.endIgnore(viewerOf(request).actor, ignoreId)))
        throw notFound('This ignore is not in force any more.');
      return reply.redirect(`${serverHref(siteId, { clusterId, serverId })}?done=ended#findings`, 303);
    },
  );
}

async function findServer(deps: ConsoleDeps, { siteId, clusterId, serverId }: ServerParams) {
  const site = await siteOf(deps.sites, siteId);
  const found = await deps.vulnerabilities.readServer(clusterId, serverId);
  if (found?.server.siteId !== site.id) throw notFound('No scan of this site found this server.');
  return { site, found, name: (await nameAll(deps, [found.server]))(found.server) };
}

async function showForm(
  deps: ConsoleDeps,
  reply: FastifyReply,
  params: ServerParams,
  finding: SentFinding,
  refused?: IgnorePage['refused'],
): Promise<FastifyReply> {
  const { request } = reply;
  const { site, found, name } = await findServer(deps, params);
  const line = findLine(found, finding);
  if (!line)
    throw notFound(
      'The server has no such finding any more. Load its page again to see what there is now. Nothing was changed.',
    );
  return sendConsolePage(
    reply,
    {
      title: `Ignore ${line.finding.cve}`,
      site: { site, page: 'vulnerabilities' },
      status: refused ? 422 : 200,
      isNarrow: true,
    },
    ignorePage({ site, name, line, viewer: viewerOf(request), refused }),
  );
}

function findLine({ services }: ServerWithServices, finding: SentFinding): FindingLine | undefined {
  return findingLines(services).find(
    ({ service, finding: { cve } }) =>
      cve === finding.cve &&
      service.address === finding.address &&
      service.transport === finding.transport &&
      String(service.port) === finding.port &&
      service.fingerprint === finding.fingerprint,
  );
}

/** A time of a form, in UTC; NaN, which no end may be, for what is none. */
function readUntil(text: string): number | null {
  if (text.trim() === '') return null;
  return /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?$/.test(text.trim())
    ? Date.parse(`${text.trim()}Z`)
    : Number.NaN;
}

interface ServerFindingsPage {
  site: Site;
  name: string;
  found: ServerWithServices;
  open: string | undefined;
  inOperations: OperationsLink;
  viewer: Viewer;
  nowMs: number;
}

/** The page of one server's potential vulnerabilities: findings, the evidence that they rest on, and what is ignored. */
function serverFindingsPage(request: FastifyRequest, page: ServerFindingsPage): Content {
  const { site, name, found, open, viewer, nowMs } = page;
  const { server, services, ignores } = found;
  const tables: ServerTables = { siteId: site.id, services, open, viewer, nowMs };
  const lines = findingLines(services);
  const ignored = lines.filter(({ ignore }) => ignore !== null);
  const apart = apartLines(services);
  const past = ignores.filter((one) => !isInForce(one));
  const leftOut = services.reduce((sum, service) => sum + service.leftOut, 0);
  return [
    pageHeader({
      title: name,
      state: stateOf(page),
      actions: [
        link(`/sites/${site.id}/port-scans`, 'Port scans', { kind: 'button' }),
        link('/system/vulnerability-database', 'Vulnerability database', { kind: 'button' }),
        page.inOperations({ kind: 'server', clusterId: server.clusterId, serverId: server.serverId }),
      ],
    }),
    leftOut > 0 &&
      banner({
        tone: 'info',
        title: `${formatCount(leftOut)} findings are left out`,
        text: 'Of each service the 500 most severe are kept.',
      }),
    activeOf(server) > 0 && severityBar({ label: 'Active potential vulnerabilities', counts: server }),
    figures(page),
    section(
      { id: 'findings', title: 'Active', description: findingMeaning },
      findingTable(
        request,
        tables,
        lines.filter(({ ignore }) => ignore === null),
      ),
    ),
    ignored.length > 0 &&
      section(
        {
          id: 'ignored',
          title: 'Ignored',
          description:
            'An ignore is of one address, port, software and CVE: another version or another owner of the address does not inherit it. Operations does not list it for the customer. Customers have ignores of their own.',
        },
        ignoredTable(request, tables, ignored),
      ),
    apart.length > 0 &&
      section(
        {
          id: 'apart',
          title: 'Shown apart',
          description: 'These are not active, not counted and not delivered to operations.',
        },
        apartTable(request, tables, apart),
      ),
    section(
      {
        id: 'services',
        title: 'Services',
        description: `The evidence of port scans that findings rest on. It is stale two hours after a common scan, or 27 hours after a full one, and expires after ${keptText('scans')}.`,
      },
      serviceTable(request, tables),
    ),
    past.length > 0 &&
      section({ id: 'past-ignores', title: 'Ended ignores' }, pastIgnoreTable(request, past, nowMs)),
    html`<p class="hint">${nvdNotice}</p>`,
  ];
}

const isInForce = ({ endedAtMs, isOver, isCurrent }: Ignore) => endedAtMs === null && !isOver && isCurrent;

function stateOf({ found: { server }, nowMs }: ServerFindingsPage): { tone: Tone; text: string } {
  const active = activeOf(server);
  if (server.checkedAtMs === null) return { tone: 'info', text: 'Its services are being assessed.' };
  if (active === 0)
    return server.unable === server.services
      ? { tone: 'info', text: 'No service could be assessed.' }
      : { tone: 'good', text: 'No active potential vulnerability.' };
  return {
    tone: server.critical + server.high > 0 ? 'warn' : 'info',
    text: `${activeText(server, active)}. Assessed ${formatAge(server.checkedAtMs, nowMs)}.`,
  };
}

function figures({ found: { server }, nowMs }: ServerFindingsPage): Content {
  const ageOf = (ms: number | null) => (ms === null ? undefined : formatAge(ms, nowMs));
  return stats(
    stat({ label: 'Ignored', value: formatCount(server.ignored), source: 'not among the active' }),
    stat({
      label: 'Unable to assess',
      value: formatCount(server.unable),
      source: `of ${plural(server.services, 'service', 'services')}`,
    }),
    stat({ label: 'Scanned', value: ageOf(server.evidenceAtMs), source: 'newest evidence' }),
    stat({ label: 'Assessed', value: ageOf(server.checkedAtMs), source: 'after scans and refreshes' }),
    stat({ label: 'Records', value: ageOf(server.databaseAtMs), source: 'the oldest that were compared' }),
  );
}

// The form that ignores one finding of a server.

interface IgnorePage {
  site: Site;
  name: string;
  line: FindingLine;
  viewer: Viewer;
  /** A refused form. */
  refused?: { message: string; reason: string; until: string } | undefined;
}

function ignorePage({ site, name, line, viewer, refused }: IgnorePage): Content {
  const { service, finding } = line;
  const href = serverHref(site.id, service);
  const { address, transport, port, fingerprint } = service;
  return [
    pageHeader({ title: `Ignore ${finding.cve}` }),
    definitionList([
      { term: 'Server', value: link(href, name) },
      { term: 'Service', value: html`${code(portText(service))} of ${code(address)}` },
      { term: 'Software', value: softwareText(service) },
      { term: 'Severity', value: [ratingBadge(finding), ' ', remarks(finding)] },
      { term: 'Summary', value: finding.summary },
    ]),
    section(
      {
        title: 'Reason',
        description:
          'The finding moves to the ignored ones. Operations does not list it for the customer any more, and counts it as ignored by operators. Another version of the software is not ignored.',
      },
      form(
        {
          action: `${href}/ignore`,
          csrfToken: viewer.csrfToken,
          submit: 'Ignore finding',
          cancel: link(href, 'Cancel'),
          error: refused?.message,
        },
        [
          Object.entries({ address, transport, port, fingerprint, cve: finding.cve }).map(([key, value]) =>
            hiddenField(key, value),
          ),
          field({
            name: 'reason',
            label: 'Reason',
            required: true,
            maxLength: ignoreReasonMax,
            value: refused?.reason ?? '',
            hint: 'Such as: the module is not loaded. It is kept in the audit trail.',
          }),
          field({
            kind: 'datetime-local',
            name: 'until',
            label: 'Until, UTC',
            value: refused?.until ?? '',
            hint: 'Leave empty to ignore it until it is ended by hand.',
          }),
        ],
      ),
    ),
  ];
}

// The table of one server's services: the evidence of scans, and what could be assessed.

/** Findings of a package's original, which are read one step away. */
const originalsShown = 20;

const keyOf = (service: ServiceWithFindings) => `${service.address} ${portText(service)}`;

function serviceTable(request: FastifyRequest, tables: ServerTables): Content {
  const { services, open, nowMs } = tables;
  return dataTable<ServiceWithFindings>(request, {
    ...pagedRows(request, 'services', services, rowsShown),
    caption: 'Services',
    card: { line: ['software', 'assessment'] },
    isStacked: true,
    rowTone: ({ reason }) => (reason === null ? undefined : 'neutral'),
    rowDetail: (service) =>
      service.reason !== null && keyOf(service) === open ? originalsOf(request, service) : '',
    columns: [
      textColumn('port', 'Port', portText, { show: code }),
      addressColumn(tables.siteId, (row) => row.address),
      { key: 'software', header: 'Software', kind: 'prose', cell: softwareText, value: softwareText },
      {
        key: 'assessment',
        header: 'Assessment',
        kind: 'prose',
        cell: (row) => assessmentCell(request, row),
        value: ({ reason }) => (reason === null ? 'assessed' : 'unable'),
      },
      countColumn('active', 'Active', (row) => countOf(row, false)),
      countColumn('ignored', 'Ignored', (row) => countOf(row, true)),
      {
        key: 'seen',
        header: 'Seen',
        kind: 'figure',
        cell: (row) => evidenceAge(row, nowMs),
        field: 'observed_at',
        value: ({ observedAtMs }) => isoTime(observedAtMs),
      },
      {
        key: 'database',
        header: 'Records',
        kind: 'figure',
        cell: ({ databaseAtMs }) => (databaseAtMs === null ? 'none' : age(databaseAtMs, nowMs)),
        field: 'database_at',
        value: ({ databaseAtMs }) => isoTime(databaseAtMs),
      },
      textColumn('scan', 'Scan', ({ scanId }) => scanId, {
        field: 'scan_id',
        show: (scanId) => html`<span title="${scanId}">${code(scanId.slice(0, 8))}</span>`,
      }),
    ],
    fields: [
      { field: 'reason', value: ({ reason }) => reason },
      { field: 'fingerprint', value: ({ fingerprint }) => fingerprint },
      { field: 'first_observed_at', value: ({ firstObservedAtMs }) => isoTime(firstObservedAtMs) },
      { field: 'common_observed_at', value: ({ commonAtMs }) => isoTime(commonAtMs) },
      { field: 'full_observed_at', value: ({ fullAtMs }) => isoTime(fullAtMs) },
      { field: 'findings_left_out', value: ({ leftOut }) => leftOut },
    ],
    empty: {
      title: 'No open ports',
      text: 'Scans of the last seven days found none, or their evidence has expired.',
    },
  });
}

const countOf = ({ reason, findings }: ServiceWithFindings, isIgnored: boolean) =>
  reason === null ? findings.filter(({ ignore }) => (ignore !== null) === isIgnored).length : 0;

function countColumn(
  key: string,
  header: string,
  read: (row: ServiceWithFindings) => number,
): DataColumn<ServiceWithFindings> {
  return {
    ...{ key, header, kind: 'figure' },
    cell: (row) => (row.reason === null ? formatCount(read(row)) : '–'),
    value: (row) => (row.reason === null ? read(row) : null),
  };
}

function assessmentCell(request: FastifyRequest, service: ServiceWithFindings): Content {
  if (service.reason === null)
    return html`${badge('good', 'assessed')} <span class="hint">${service.isJudged ? byTracker : notConfirmed}</span>`;
  const count = service.findings.length;
  const href = `${withQuery(request.url, { open: keyOf(service) })}#services`;
  return html`${badge('neutral', 'unable')} ${unableRows[service.reason].words}${
    count > 0 && html`. ${link(href, `Its original has ${formatCount(count)}`)}`
  }`;
}

/** What the original of a package has: no findings of the service. */
function originalsOf(request: FastifyRequest, { findings, version }: ServiceWithFindings): Content {
  const shown = findings.slice(0, originalsShown);
  const more = findings.length - shown.length;
  return html`<p><strong>The original of version ${version ?? 'unknown'}</strong>: not findings of this service, because the distribution may have mended them. ${link(`${withQuery(request.url, { open: undefined })}#services`, 'Close')}</p><ul>${shown.map(
    ({ finding }) => html`<li>${nvdLink(finding.cve)} ${ratingBadge(finding)} ${finding.summary}</li>`,
  )}</ul>${more > 0 && html`<p class="hint">and ${formatCount(more)} more</p>`}`;
}
