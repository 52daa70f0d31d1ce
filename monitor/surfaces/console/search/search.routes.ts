/** `/search`: the request for results, for the suggestions below the search box, and for the command palette. */
import { Type } from 'typebox';
import { textMax } from '#monitor/search/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { PALETTE_HITS_MAX, sendPage, sendPaletteHits } from '#service-kit/pages/index.ts';
import { rowsLimit } from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { sendConsolePage } from '../frame.ts';
import { hitsOf } from './hits.ts';
import { searchPage, shownMax, suggestedMax, suggestions } from './search.page.ts';

const Query = Type.Object({ q: Type.Optional(Type.String({ maxLength: 1_000 })) });

export function registerSearch(app: App, deps: ConsoleDeps): void {
  app.get('/search', { schema: { querystring: Query } }, async (request, reply) => {
    const typed = request.query.q?.trim() ?? '';
    const found = await deps.search.find(typed, rowsLimit(request, shownMax));
    return sendConsolePage(request, reply, { title: 'Search' }, searchPage(request, typed, found));
  });

  app.get('/search/suggestions', { schema: { querystring: Query } }, async (request, reply) => {
    const found = await deps.search.find((request.query.q ?? '').slice(0, textMax), suggestedMax);
    return sendPage(reply, suggestions(found));
  });

  app.get('/search/palette', { schema: { querystring: Query } }, async (request, reply) => {
    const found = await deps.search.find((request.query.q ?? '').slice(0, textMax), PALETTE_HITS_MAX);
    const hits = found ? hitsOf(found) : [];
    return sendPaletteHits(
      reply,
      hits.map(({ kind, text, href, detail, state, site }) => ({
        ...{ kind, text, href },
        detail: [detail, state?.text, site].filter(Boolean).join(', '),
      })),
    );
  });
}
