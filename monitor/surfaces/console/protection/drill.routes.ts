/** `/sites/{id}/protection/addresses/{address}/drills`: starting and stopping drills. */
import { Type } from 'typebox';
import type { App } from '#service-kit/http/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { faultText, SiteParams, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { addressHrefOf, explain, showAddress } from './address.routes.ts';
import { refusalOf } from './threshold-parts.ts';

const Params = Type.Object({ ...SiteParams.properties, address: Type.String({ maxLength: 64 }) });
const StopParams = Type.Object({ ...Params.properties, drillId: Type.String({ format: 'uuid' }) });
const text = Type.String({ maxLength: 100 });
const Body = Type.Object({
  class: text,
  direction: text,
  pps: text,
  seconds: text,
  mails_customer: Type.Optional(text),
});

export function registerDrills(app: App, deps: ConsoleDeps): void {
  const path = '/sites/:siteId/protection/addresses/:address/drills';
  app.post(path, { schema: { params: Params, body: Body } }, async (request, reply) => {
    const { siteId, address } = request.params;
    const site = await siteOf(deps.sites, siteId);
    const found = await explain(deps, siteId, address);
    try {
      await deps.protection.startDrill(viewerOf(request).actor, siteId, found.address, request.body);
    } catch (error) {
      const drill = refusalOf(error, request.body);
      return showAddress(deps, reply, site, found, { drill });
    }
    return reply.redirect(`${addressHrefOf(siteId, found.address)}?done=drill#drills`, 303);
  });

  app.post(`${path}/:drillId/stop`, { schema: { params: StopParams } }, async (request, reply) => {
    const { siteId, drillId } = request.params;
    const { address } = await explain(deps, siteId, request.params.address);
    let isStopped = false;
    try {
      isStopped = await deps.protection.stopDrill(viewerOf(request).actor, siteId, drillId);
    } catch (error) {
      faultText(error);
    }
    return reply.redirect(`${addressHrefOf(siteId, address)}${isStopped ? '?done=stopped' : ''}#drills`, 303);
  });
}
