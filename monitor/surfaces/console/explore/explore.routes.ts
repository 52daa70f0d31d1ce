/** `/sites/{id}/explore`: the requests for the explorer, the data of its chart, and completion of filters. */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError, hasCode } from '#common/errors/index.ts';
import { type Dimension, queryBox } from '#monitor/explorer/index.ts';
import {
  answerChart,
  chartUnit,
  completeFilters,
  completionsMax,
  filterTextMax,
} from '#service-kit/explorer/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import { chartJson, readRange, toast, withQuery } from '#service-kit/pages/index.ts';
import { wantedFile } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { type SitePage, sitePage } from './explore.page.ts';
import type { ExploreView } from './explore-view.ts';
import { readChart, readPage, readRangedView } from './read-explore.ts';
import { createRunningReads, type RunningReads } from './running-reads.ts';
import { registerSavedViews } from './saved-views.routes.ts';
import { type Unanswered, unansweredPage } from './unanswered.page.ts';

const text = Type.Optional(Type.String({ maxLength: filterTextMax }));
const Querystring = Type.Object({ q: text, by: text, tables: text, saved: text, stopped: text });

export function registerExplore(app: App, deps: ConsoleDeps): void {
  const schema = { params: SiteParams, querystring: Querystring };
  const reads = createRunningReads<SitePage>(deps.clock);
  app.get('/sites/:siteId/explore', { schema }, async (request, reply) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const nowMs = Date.now();
    const view = readRangedView(site.id, request, nowMs);
    const shown = await readOrSay(deps, reads, request, view);
    const page = { title: 'Explorer', site: { site, page: 'explore' } } as const;
    if ('why' in shown) {
      // A browser asks again by itself, also without JavaScript.
      if (shown.why === 'running') reply.header('refresh', '1');
      const range = readRange(request.query as Record<string, unknown>, nowMs, '24h');
      const status = shown.why === 'refused' ? 422 : 200;
      const content = unansweredPage(view, deps.explorer.dimensions, range, shown, nowMs);
      return sendConsolePage(request, reply, { ...page, status }, content);
    }
    const isSaved = request.query.saved !== undefined;
    return sendConsolePage(
      request,
      reply,
      { ...page, ...(isSaved && { toast: toast('good', 'Saved.') }) },
      sitePage(request, shown),
    );
  });
  registerSavedViews(app, deps);

  app.get('/sites/:siteId/explore.json', { schema }, async (request) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    const nowMs = Date.now();
    const view = readRangedView(site.id, request, nowMs);
    const read = await orRefused(readChart(deps, request, view, nowMs));
    return chartJson(chartUnit(read.answer), answerChart(view, read.answer, read.around));
  });

  app.get(
    '/sites/:siteId/explore/complete',
    {
      schema: {
        params: SiteParams,
        querystring: Type.Object({ q: Type.String({ maxLength: filterTextMax }) }),
      },
    },
    async (request) => {
      const site = await siteOf(deps.sites, request.params.siteId);
      const filters = [...deps.explorer.dimensions, 'side' as const];
      return completeFilters(request.query.q, { ...queryBox, filters }, async (dimension, text) => {
        const found = await deps.explorer.complete(site.id, dimension as Dimension, text, completionsMax);
        return found.flatMap(({ value }) => value ?? []);
      });
    },
  );
}

/** What the page shows, or why it has no answer (yet). A file and a page's own refreshing wait for the whole. */
async function readOrSay(
  deps: ConsoleDeps,
  reads: RunningReads<SitePage>,
  request: FastifyRequest,
  view: ExploreView,
): Promise<SitePage | Unanswered> {
  const read = (signal: AbortSignal) => readPage(deps, request, view, Date.now(), signal);
  if (request.headers['sec-fetch-mode'] !== 'navigate' || wantedFile(request) !== null)
    return orRefused(read(new AbortController().signal));
  const person = String(viewerOf(request).operator.id);
  const key = withQuery(request.url, { stopped: undefined });
  if ((request.query as { stopped?: unknown }).stopped !== undefined) {
    reads.leave(person, key);
    return { why: 'stopped' };
  }
  try {
    const joined = await reads.join(person, key, read);
    return joined.state === 'done' ? joined.value : { why: 'running', seconds: joined.seconds };
  } catch (error) {
    if (hasCode(error, 'explorer.left')) return { why: 'stopped' };
    const refusal = refusalOf(error);
    if (!refusal) throw error;
    return { why: 'refused', ...refusal };
  }
}

/** Refusals that the asker can do something about, by their codes. */
const refusals: Readonly<Record<string, string>> = {
  'explorer.too_many_steps': 'Too many steps',
  'facts.too_slow': 'This takes too long',
  'explorer.busy': 'Too many queries at once',
};

function refusalOf(error: unknown): { title: string; message: string } | null {
  const title = error instanceof CodedError ? refusals[error.code] : undefined;
  return title === undefined ? null : { title, message: (error as CodedError).message };
}

async function orRefused<T>(read: Promise<T>): Promise<T> {
  try {
    return await read;
  } catch (error) {
    const refusal = refusalOf(error);
    if (!refusal) throw error;
    throw new HttpError(422, { code: 'validation_failed', message: refusal.message });
  }
}
