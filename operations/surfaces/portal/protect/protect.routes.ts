/** The Protect tab: attacks, open ports, potential vulnerabilities and settings of a server. */
import { Type } from 'typebox';
import type { Features } from '#operations/features.ts';
import type {
  FindingStatus,
  IncidentStatus,
  ProtectSettings,
  ScanStatus,
  ServerPorts,
} from '#operations/protect/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  age,
  type Content,
  formatCount,
  type Html,
  html,
  pageHeader,
  refreshing,
  sendPage,
  type Tone,
  withQuery,
} from '#service-kit/pages/index.ts';
import { groupedMax } from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';
import {
  attackState,
  attacksNow,
  attacksSection,
  isHeadline,
  type ListedAttacks,
  readListedAttacks,
} from './attacks.ts';
import { attacksCard, deliverySection, findingsCard, scansCard } from './delivery-cards.ts';
import { type FindingsOfPage, findingsSection } from './findings.page.ts';
import { findSettingsOf } from './guard-protect.ts';
import { portsSection, toastOf } from './ports.routes.ts';
import { settingsSection, viewsOffPage } from './settings.routes.ts';

const text = Type.Optional(Type.String({ maxLength: 64 }));
const schema = {
  params: Type.Object({ id: Type.String() }),
  querystring: Type.Object({ range: text, from: text, to: text, address: text, scan: text }),
};

export function registerProtect(app: App, deps: Features): void {
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

interface ProtectPageOptions {
  visitor: Visitor;
  server: Server;
  settings: ProtectSettings;
  /** How the delivery stands of what the page shows. */
  delivery: { attacks: IncidentStatus; scans: ScanStatus; findings: FindingStatus };
  attacks: ListedAttacks;
  ports: ServerPorts;
  findings: FindingsOfPage;
  /** The outcome of a click. */
  toast: { tone: Tone; text: string } | undefined;
}

/** The Protect page: attacks, open ports and potential vulnerabilities of a server, and its protection settings. */
function protectPage(options: ProtectPageOptions): Html {
  const { visitor, server, attacks, delivery, ports } = options;
  const url = `/client/servers/${server.id}/protect`;
  const header = [
    refreshing({ id: 'protect-state', url, everySeconds: 15 }, [
      pageHeader({ title: server.name, state: stateOf(options) }),
    ]),
    attacksNow(server, attacks.open, attacks.nowMs),
  ];
  const body = [
    refreshing({ id: 'protect-tables', url, everySeconds: 15 }, [
      attacksSection(server, attacks.listed, attacks.nowMs),
      portsSection(options),
      findingsSection(server, options.findings),
      deliverySection(
        [
          attacksCard(delivery.attacks, ports.nowMs),
          scansCard(delivery.scans, ports.nowMs),
          findingsCard(delivery.findings, ports.nowMs),
        ],
        ports.nowMs,
      ),
    ]),
    settingsSection(options),
  ];
  return serverFrame({ visitor, server, tab: 'protect', toast: options.toast }, header, body);
}

function stateOf({ attacks, ports, delivery, findings }: ProtectPageOptions): { tone: Tone; text: Content } {
  const now = attacks.open.filter((each) => isHeadline(each, attacks.nowMs));
  if (now.length > 0) return attackState(now);
  const open = `${ports.open.length === 1 ? 'One open port' : `${formatCount(ports.open.length)} open ports`}`;
  const scannedAt = delivery.scans.latestAt;
  if (scannedAt === null) return { tone: 'neutral', text: 'No attack now. Not scanned for open ports yet.' };
  const { critical } = findings.summary;
  const severe =
    critical === 0
      ? ''
      : `, ${formatCount(critical)} critical potential ${critical === 1 ? 'vulnerability' : 'vulnerabilities'}`;
  return {
    tone: critical > 0 ? 'warn' : 'good',
    text: html`No attack now. ${open}${severe}, last scan ${age(scannedAt.getTime(), ports.nowMs)}.`,
  };
}
