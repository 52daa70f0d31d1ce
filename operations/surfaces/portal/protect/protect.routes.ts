/** The Protect tab: attacks, open ports, potential vulnerabilities and settings of a server. */
import { Type } from 'typebox';
import type { ProtectFindings, ProtectIncidents, ProtectScans } from '#operations/protect/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage, withQuery } from '#service-kit/pages/index.ts';
import { groupedMax } from './findings.section.ts';
import { findSettingsOf, type ProtectGuardDeps } from './guard-protect.ts';
import { toastOf } from './ports.routes.ts';
import { protectPage } from './protect.page.ts';
import { type AttackReaderDeps, readListedAttacks } from './read-attacks.ts';
import { viewsOffPage } from './settings.page.ts';

export interface ProtectDeps extends ProtectGuardDeps, AttackReaderDeps {
  protectIncidents: Pick<ProtectIncidents, 'list' | 'readStatus'>;
  protectScans: Pick<ProtectScans, 'read' | 'readStatus'>;
  protectFindings: Pick<ProtectFindings, 'list' | 'read' | 'readStatus'>;
}

const text = Type.Optional(Type.String({ maxLength: 64 }));
const schema = {
  params: Type.Object({ id: Type.String() }),
  querystring: Type.Object({ range: text, from: text, to: text, address: text, scan: text }),
};

export function registerProtect(app: App, deps: ProtectDeps): void {
  app.get('/servers/:id/protect', { schema }, async (request, reply) => {
    const { visitor, server, settings, subject } = await findSettingsOf(deps, request);
    if (!settings.viewsOn) return sendPage(reply, viewsOffPage({ visitor, server, settings }), 404);
    const { scan, ...range } = request.query;
    // Links from before the traffic had a tab of its own.
    if (Object.values(range).some((value) => value !== undefined))
      return reply.redirect(withQuery(`/client/servers/${server.id}/traffic`, range), 303);
    const [attacksStatus, scansStatus, findingsStatus, ports, findings, worst, attacks] = await Promise.all([
      deps.protectIncidents.readStatus(visitor.actor, subject),
      deps.protectScans.readStatus(visitor.actor, subject),
      deps.protectFindings.readStatus(visitor.actor, subject),
      deps.protectScans.read(visitor.actor, subject),
      deps.protectFindings.read(visitor.actor, subject),
      deps.protectFindings.list(visitor.actor, subject, { state: 'active', limit: groupedMax }),
      readListedAttacks(deps, visitor.actor, subject),
    ]);
    const page = protectPage({
      ...{ visitor, server, settings, attacks, ports },
      delivery: { attacks: attacksStatus, scans: scansStatus, findings: findingsStatus },
      findings: { ...findings, worst, hasScan: scansStatus.latestAt !== null },
      toast: toastOf(scan, ports),
    });
    return sendPage(reply, page);
  });
}
