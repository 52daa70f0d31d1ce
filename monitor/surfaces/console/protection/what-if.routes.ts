/** `/sites/{id}/protection/addresses/{address}/what-if`: the request for a replay. It changes nothing. */
import { Type } from 'typebox';
import type { App } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { explain } from './address.routes.ts';
import { refusalOf, thresholdProperties } from './form-body.ts';
import type { Refused } from './threshold-parts.ts';
import { readTexts } from './threshold-text.ts';
import { whatIfPage } from './what-if.page.ts';

const Params = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const Query = Type.Object({ ...thresholdProperties, learn: Type.Optional(Type.String({ maxLength: 4 })) });

/** Incidents of the address to which the table links, the newest. */
const incidentsMax = 500;

export function registerWhatIf(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/addresses/:address/what-if';
  app.get(path, { schema: { params: Params, querystring: Query } }, async (request, reply) => {
    const { siteId } = request.params;
    const site = await siteOf(deps.sites, siteId);
    const found = await explain(deps, siteId, request.params.address);
    const texts = readTexts(request.query);
    const nowMs = deps.clock.nowMs();
    let refused: Refused | undefined;
    const asking = deps.protection.askWhatIf(siteId, found.address, texts, nowMs).catch((error: unknown) => {
      refused = refusalOf(error, request.query);
      return null;
    });
    const [answer, incidents, learned] = await Promise.all([
      asking,
      deps.incidents.list({ siteId, address: found.address }, incidentsMax),
      // It sorts every minute, so only where it was asked for.
      request.query.learn === undefined ? null : deps.protection.learn(siteId, found.address, nowMs),
    ]);
    return sendConsolePage(
      request,
      reply,
      {
        title: `What if: ${found.address}`,
        site: { site, page: 'protection' },
        status: refused?.status ?? 200,
      },
      whatIfPage(request, {
        site,
        found,
        texts,
        answer,
        incidents,
        refused,
        learned,
        viewer: viewerOf(request),
      }),
    );
  });
}
