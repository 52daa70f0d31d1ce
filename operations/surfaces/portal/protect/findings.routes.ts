/** Potential vulnerabilities of a server: the list, one service, one finding, ignoring it, and `findings.json`. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError, hasCode } from '#common/errors/index.ts';
import { canonicalAddress } from '#common/ip/index.ts';
import { countedSeverities } from '#contracts/findings.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';
import type { Features } from '#operations/features.ts';
import type { ServerFindings } from '#operations/protect/index.ts';
import type { FindingQuery, FindingRow } from '#operations/views/finding-store.ts';
import type { App } from '#service-kit/http/index.ts';
import { chosenOf, sendPage, type Tone, withQuery } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import { groupedMax, readFindingCursor, writeFindingCursor } from '../../parts/index.ts';
import { Id } from '../guard.ts';
import { type FindingPageOptions, findingPage, servicePage } from './finding.page.ts';
import {
  type FindingsView,
  findingHref,
  findingsPage,
  findingsPath,
  type IgnoreInput,
  ignoreDays,
} from './findings.page.ts';
import { findProtectedOf, type ProtectedServer } from './guard-protect.ts';

const pageSize = 50;
/** Of one service a monitor sends no more. */
const ofServiceMax = 500;
/** In `findings.json`, the worst. */
const fileMax = 10_000;

const ListQuery = Type.Object({
  view: Type.Optional(Type.String({ maxLength: 10 })),
  severity: Type.Optional(Type.String({ maxLength: 10 })),
  after: Type.Optional(Type.String({ maxLength: 100 })),
  done: Type.Optional(Type.String({ maxLength: 10 })),
});
const ServiceId = Type.Object({ id: Type.String(), address: Type.String(), service: Type.String() });
const FindingId = Type.Object({
  ...{ id: Type.String(), address: Type.String(), service: Type.String(), cve: Type.String() },
});
const DoneQuery = Type.Object({ done: Type.Optional(Type.String({ maxLength: 10 })) });
const ignoreProperties = {
  reason: Type.String({ maxLength: 10_000 }),
  days: Type.String({ maxLength: 4 }),
  // A box that is not ticked is not sent.
  everywhere: Type.Optional(Type.String({ maxLength: 4 })),
};
const IgnoreForm = Type.Object({ ...ignoreProperties, fingerprint: Type.String({ maxLength: 64 }) });
const Pick = Type.String({ maxLength: 200 });
const SeveralForm = Type.Object({
  ...ignoreProperties,
  finding: Type.Optional(Type.Union([Pick, Type.Array(Pick, { maxItems: ofServiceMax })])),
});
const EndForm = Type.Object({ fingerprint: Type.String({ maxLength: 64 }) });

/** What a page says after a click: the word in the URL chooses, its text never comes from there. */
const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  ignored: { tone: 'good', text: 'The finding is ignored.' },
  several: { tone: 'good', text: 'The selected findings are ignored.' },
  none: { tone: 'bad', text: 'No finding was selected. Tick the findings to ignore.' },
  changed: {
    tone: 'bad',
    text: 'Some of these findings have changed since the page was opened. The others are ignored.',
  },
  ended: { tone: 'good', text: 'The finding is active again.' },
  gone: { tone: 'bad', text: 'The finding has changed since the page was opened. Nothing was done.' },
};
const toastOf = (done: string | undefined) => chosenOf(outcomes, done);

type FindingRequest = FastifyRequest<{
  Params: { id: string; address: string; service: string; cve: string };
}>;

export function registerFindings(app: App, deps: Features): void {
  const path = '/servers/:id/protect/findings';
  app.get(path, { schema: { params: Id, querystring: ListQuery } }, async (request, reply) =>
    showList(deps, await findProtectedOf(deps, request), request.query, reply),
  );

  app.get(`${path}.json`, { schema: { params: Id } }, async (request, reply) => {
    const { visitor, subject } = await findProtectedOf(deps, request);
    const [{ unable }, findings] = await Promise.all([
      deps.protectFindings.read(visitor.actor, subject),
      deps.protectFindings.list(visitor.actor, subject, { limit: fileMax }),
    ]);
    return reply.send({ findings: findings.map(findingToWire), unable: unable.map(unableToWire) });
  });

  app.get(`${path}/:address/:service`, { schema: { params: ServiceId } }, async (request, reply) => {
    const found = await findProtectedOf(deps, request);
    return showService(deps, found, placeOf(request.params), reply);
  });

  app.get(
    `${path}/:address/:service/:cve`,
    { schema: { params: FindingId, querystring: DoneQuery } },
    async (request, reply) => {
      const found = await findOne(deps, request);
      return sendPage(reply, findingPage({ ...found, toast: toastOf(request.query.done) }));
    },
  );

  app.post(`${path}/ignore`, { schema: { params: Id, body: SeveralForm } }, async (request, reply) =>
    ignoreSeveral(deps, await findProtectedOf(deps, request), request.body, reply),
  );

  app.post(
    `${path}/:address/:service/:cve/ignore`,
    { schema: { params: FindingId, body: IgnoreForm } },
    async (request, reply) => ignoreOne(deps, request, request.body, reply),
  );

  app.post(
    `${path}/:address/:service/:cve/end-ignore`,
    { schema: { params: FindingId, body: EndForm } },
    async (request, reply) => {
      const { visitor, server } = await findProtectedOf(deps, request);
      const finding = { ...placeOf(request.params), cveId: request.params.cve };
      const key = { ...finding, fingerprint: request.body.fingerprint };
      const done = await outcomeOf(async () =>
        (await deps.protectFindings.endIgnore(visitor.actor, server.id, key)) ? 'ended' : 'gone',
      );
      const to = done === 'gone' ? findingsPath(server.id) : findingHref(server.id, finding);
      return reply.redirect(withQuery(to, { done }), 303);
    },
  );
}

/** `gone` where the finding is not there any more; a server of others is a page that does not exist. */
async function outcomeOf(act: () => Promise<string>): Promise<string> {
  try {
    return await act();
  } catch (error) {
    if (hasCode(error, 'protect_findings.views_off') || hasCode(error, 'protect_findings.not_found'))
      throw noSuchPage();
    if (!hasCode(error, 'protect_findings.no_finding')) throw error;
    return 'gone';
  }
}

async function showList(
  deps: Features,
  { visitor, server, subject }: ProtectedServer,
  query: { view?: string; severity?: string; after?: string; done?: string },
  reply: FastifyReply,
  refused?: IgnoreInput,
): Promise<FastifyReply> {
  const view: FindingsView = (['ignored', 'unable'] as const).find((name) => name === query.view) ?? 'active';
  const severity = countedSeverities.find((name) => name === query.severity);
  const after = readFindingCursor(query.after);
  const isWhole = view === 'active' && severity === undefined && after === undefined;
  const [read, { latestAt }, found, worst] = await Promise.all([
    deps.protectFindings.read(visitor.actor, subject),
    deps.protectScans.readStatus(visitor.actor, subject),
    view === 'unable'
      ? []
      : deps.protectFindings.list(visitor.actor, subject, {
          ...{ state: view, severities: severity && [severity], after, limit: pageSize + 1 },
        }),
    isWhole ? deps.protectFindings.list(visitor.actor, subject, { state: 'active', limit: groupedMax }) : [],
  ]);
  const rows = found.slice(0, pageSize);
  const last = rows.at(-1);
  const url = withQuery(findingsPath(server.id), { view: view === 'active' ? undefined : view, severity });
  const page = {
    ...{ visitor, server, view, rows, worst, severity, url, refused },
    findings: { ...read, hasScan: latestAt !== null },
    isFirst: after === undefined,
    nextHref:
      found.length > pageSize && last ? withQuery(url, { after: writeFindingCursor(last) }) : undefined,
    toast: toastOf(query.done),
  };
  return sendPage(reply, findingsPage(page), refused === undefined ? 200 : 422);
}

interface Place {
  address: string;
  transport: ScanTransport;
  port: number;
}

/** `198.51.100.7` and `tcp-22` of a path; 404 for what is none. */
function placeOf({ address, service }: { address: string; service: string }): Place {
  const [, transport, port] = /^(tcp|udp)-([1-9]\d{0,4})$/.exec(service) ?? [];
  const canonical = canonicalAddress(address);
  if (canonical === null || port === undefined || Number(port) > 65_535) throw noSuchPage();
  return { address: canonical, transport: transport as Place['transport'], port: Number(port) };
}

async function showService(
  deps: Features,
  { visitor, server, subject }: ProtectedServer,
  place: Place,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { unable, nowMs } = await deps.protectFindings.read(visitor.actor, subject);
  const isHere = (row: Place) =>
    row.address === place.address && row.transport === place.transport && row.port === place.port;
  const refused = unable.find(isHere);
  const query = { ...place, isUpstream: refused !== undefined, limit: ofServiceMax };
  const rows = await deps.protectFindings.list(visitor.actor, subject, query);
  const service = refused ?? rows[0];
  if (service === undefined) throw noSuchPage();
  const isCut = rows.length === ofServiceMax;
  const reason = refused?.reason ?? null;
  return sendPage(reply, servicePage({ visitor, server, service, reason, rows, isCut, nowMs }));
}

type FoundFinding = Omit<FindingPageOptions, 'toast' | 'refused'>;

/** The finding of a path, of the service itself or of its original; 404 where the server has none. */
async function findOne(deps: Features, request: FindingRequest): Promise<FoundFinding> {
  const { visitor, server, subject } = await findProtectedOf(deps, request);
  const { cve } = request.params;
  const query: FindingQuery = { ...placeOf(request.params), cveId: cve, limit: 1 };
  const [own] = await deps.protectFindings.list(visitor.actor, subject, query);
  const [finding] = own
    ? [own]
    : await deps.protectFindings.list(visitor.actor, subject, { ...query, isUpstream: true });
  if (finding === undefined) throw noSuchPage();
  const { nowMs } = await deps.protectFindings.read(visitor.actor, subject);
  return { visitor, server, finding, isUpstream: own === undefined, nowMs };
}

interface IgnoreBody {
  reason: string;
  days: string;
  everywhere?: string;
}

/** The reason and the end of a form, and what is shown again where they are refused. */
function readIgnore({ reason, days, everywhere }: IgnoreBody, nowMs: number) {
  const length = ignoreDays.find((choice) => choice === days) ?? '90';
  const isEverywhere = everywhere === 'on';
  return {
    ...{ reason, isEverywhere },
    until: length === '' ? null : new Date(nowMs + Number(length) * 86_400_000),
    /** Null: another fault. */
    refusalOf: (error: unknown): IgnoreInput | null => {
      if (!(error instanceof CodedError) || error.code !== 'protect_findings.invalid') return null;
      const faults = error.details.fields as { path: string; message: string }[];
      const message = faults.map((fault) => `${fault.path}: ${fault.message}.`).join(' ');
      return { reason, days: length, isEverywhere, error: message };
    },
  };
}

/** Each finding by itself: one that has changed meanwhile keeps no other from being ignored. */
async function ignoreSeveral(
  deps: Features,
  found: ProtectedServer,
  { finding = [], ...body }: IgnoreBody & { finding?: string | string[] },
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { visitor, server, subject } = found;
  const picks = typeof finding === 'string' ? [finding] : finding;
  const path = findingsPath(server.id);
  if (picks.length === 0) return reply.redirect(withQuery(path, { done: 'none' }), 303);
  const { nowMs } = await deps.protectFindings.read(visitor.actor, subject);
  const { reason, until, isEverywhere, refusalOf } = readIgnore(body, nowMs);
  const done = new Set<string>();
  for (const pick of picks) {
    const [address = '', service = '', cveId = '', fingerprint = ''] = pick.split(' ');
    const { address: named, ...place } = placeOf({ address, service });
    const key = { ...place, address: isEverywhere ? null : named, cveId, fingerprint };
    try {
      done.add(
        await outcomeOf(async () => {
          await deps.protectFindings.ignore(visitor.actor, server.id, { ...key, reason, until });
          return 'several';
        }),
      );
    } catch (error) {
      const refused = refusalOf(error);
      if (refused === null) throw error;
      return showList(deps, found, {}, reply, refused);
    }
  }
  const outcome = !done.has('gone') ? 'several' : done.has('several') ? 'changed' : 'gone';
  return reply.redirect(withQuery(path, { done: outcome }), 303);
}

async function ignoreOne(
  deps: Features,
  request: FindingRequest,
  { fingerprint, ...body }: IgnoreBody & { fingerprint: string },
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { visitor, server } = await findProtectedOf(deps, request);
  const { nowMs } = await deps.protectFindings.read(visitor.actor, {
    serverId: server.id,
    tenantId: server.tenantId,
  });
  const { reason, until, isEverywhere, refusalOf } = readIgnore(body, nowMs);
  const { address, ...place } = placeOf(request.params);
  const key = { ...place, address: isEverywhere ? null : address, cveId: request.params.cve, fingerprint };
  try {
    const done = await outcomeOf(async () => {
      await deps.protectFindings.ignore(visitor.actor, server.id, { ...key, reason, until });
      return 'ignored';
    });
    return reply.redirect(withQuery(findingsPath(server.id), { done }), 303);
  } catch (error) {
    const refused = refusalOf(error);
    if (refused === null) throw error;
    return sendPage(reply, findingPage({ ...(await findOne(deps, request)), refused }), 422);
  }
}

const findingToWire = (row: FindingRow) => ({
  address: row.address,
  transport: row.transport,
  port: row.port,
  cve_id: row.cveId,
  severity: row.severity,
  assessment: 'assessed',
  ignored: row.state === 'ignored',
});

const unableToWire = (row: ServerFindings['unable'][number]) => ({
  address: row.address,
  transport: row.transport,
  port: row.port,
  product: row.product,
  version: row.version,
  assessment: 'unable',
  reason: row.reason,
});
