/** `/sites/{id}/vulnerabilities/servers/{cluster}/{vm}`: one server's findings, and what operators ignore of them. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { ServerWithServices } from '#monitor/vulnerabilities/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { toast } from '#service-kit/pages/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { readOperationsLink } from '../parts/operations-link.ts';
import { nameAll } from '../port-scans/port-lines.ts';
import { type FindingLine, findingLines } from './finding-tables.ts';
import { type IgnorePage, ignorePage } from './ignore.page.ts';
import { serverHref } from './paths.ts';
import { serverFindingsPage } from './server.page.ts';

const Id = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const ServerParams = Type.Object({ ...SiteParams.properties, clusterId: Id, vmId: Id });
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

const path = '/sites/:siteId/vulnerabilities/servers/:clusterId/:vmId';
const done: Readonly<Record<string, string>> = {
  ignored: 'Finding ignored.',
  ended: 'The finding is active again.',
};

export function registerServerFindings(app: App, deps: ConsoleDeps): void {
  const Query = Type.Object({
    open: Type.Optional(Type.String({ maxLength: 100 })),
    done: Type.Optional(Type.String({ maxLength: 20 })),
  });
  app.get(path, { schema: { params: ServerParams, querystring: Query } }, async (request, reply) => {
    const { site, name, found } = await findServer(deps, request.params);
    const { open, done: what } = request.query;
    const text = done[what ?? ''];
    return sendConsolePage(
      request,
      reply,
      {
        title: name,
        site: { site, page: 'vulnerabilities' },
        ...(text ? { toast: toast('good', text) } : {}),
      },
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
      return showForm(deps, request, reply, request.params, request.query);
    },
  );

  app.post(
    `${path}/ignore`,
    { schema: { params: ServerParams, body: IgnoreBody } },
    async (request, reply) => {
      const { siteId, clusterId, vmId } = request.params;
      const { reason, until = '', ...finding } = request.body;
      // The server of the path must be of the site.
      await findServer(deps, request.params);
      try {
        const untilMs = readUntil(until);
        const ignored = { ...finding, port: Number(finding.port), clusterId, vmId, reason, untilMs };
        await deps.vulnerabilities.ignore(viewerOf(request).actor, ignored);
      } catch (error) {
        const codes = ['vulnerabilities.invalid', 'vulnerabilities.no_finding', 'vulnerabilities.ignored'];
        const message = faultText(error, ...codes);
        return showForm(deps, request, reply, request.params, finding, { message, reason, until });
      }
      return reply.redirect(`${serverHref(siteId, { clusterId, vmId })}?done=ignored#ignored`, 303);
    },
  );

  app.post(
    `${path}/ignores/:ignoreId/end`,
    { schema: { params: Type.Object({ ...ServerParams.properties, ignoreId: Id }) } },
    async (request, reply) => {
      const { siteId, clusterId, vmId, ignoreId } = request.params;
      const { found } = await findServer(deps, request.params);
      const isOwn = found.ignores.some(({ id }) => id === ignoreId);
      if (!isOwn || !(await deps.vulnerabilities.endIgnore(viewerOf(request).actor, ignoreId)))
        throw new HttpError(404, { code: 'not_found', message: 'This ignore is not in force any more.' });
      return reply.redirect(`${serverHref(siteId, { clusterId, vmId })}?done=ended#findings`, 303);
    },
  );
}

async function findServer(deps: ConsoleDeps, { siteId, clusterId, vmId }: ServerParams) {
  const site = await siteOf(deps.sites, siteId);
  const found = await deps.vulnerabilities.readServer(clusterId, vmId);
  if (found?.server.siteId !== site.id)
    throw new HttpError(404, { code: 'not_found', message: 'No scan of this site found this server.' });
  return { site, found, name: (await nameAll(deps, [found.server]))(found.server) };
}

async function showForm(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  params: ServerParams,
  finding: SentFinding,
  refused?: IgnorePage['refused'],
): Promise<FastifyReply> {
  const { site, found, name } = await findServer(deps, params);
  const line = findLine(found, finding);
  if (!line)
    throw new HttpError(404, {
      code: 'not_found',
      message:
        'The server has no such finding any more. Load its page again to see what there is now. Nothing was changed.',
    });
  return sendConsolePage(
    request,
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
