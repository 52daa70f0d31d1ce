/** `/api/v1/sites/{id}/application-settings`: a site's local prefixes, for programs with a session (NET-2.2.8). */
import { type Static, Type } from 'typebox';
import { localCidrsMax, type Site } from '#monitor/sites/index.ts';
import { type App, HttpError } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';

const Settings = Type.Object(
  { local_cidrs: Type.Array(Type.String({ maxLength: 64 }), { maxItems: localCidrsMax }) },
  { additionalProperties: false },
);

export function registerApplicationSettings(app: App, deps: Pick<ConsoleDeps, 'sites'>): void {
  const path = '/api/v1/sites/:siteId/application-settings';
  app.get(path, { schema: { params: SiteParams } }, async (request) =>
    showSettings(await siteOf(deps.sites, request.params.siteId)),
  );

  app.put(path, { schema: { params: SiteParams, body: Settings } }, async (request) => {
    const site = await siteOf(deps.sites, request.params.siteId);
    try {
      const { actor } = viewerOf(request);
      const saved = await deps.sites.setLocalCidrs(actor, site.id, request.body.local_cidrs);
      return showSettings(saved ?? site);
    } catch (error) {
      const message = faultText(error, 'sites.invalid');
      throw new HttpError(422, { code: 'validation_failed', reason: 'invalid_local_cidrs', message });
    }
  });
}

function showSettings(site: Site): Static<typeof Settings> & { site_id: number } {
  return { site_id: site.id, local_cidrs: site.localCidrs };
}
