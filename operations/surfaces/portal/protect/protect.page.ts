/** The Protect page: attacks, open ports and potential vulnerabilities of a server, and its protection settings. */
import type {
  FindingStatus,
  IncidentStatus,
  ProtectSettings,
  ScanStatus,
  ServerPorts,
} from '#operations/protect/index.ts';
import type { Server } from '#operations/servers/index.ts';
import {
  age,
  type Content,
  formatCount,
  type Html,
  html,
  pageHeader,
  refreshing,
  type Tone,
} from '#service-kit/pages/index.ts';
import type { Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';
import { attackState, attacksNow, attacksSection, isHeadline } from './attacks.ts';
import { attacksCard, deliverySection, findingsCard, scansCard } from './delivery-cards.ts';
import { type FindingsOfPage, findingsSection } from './findings.section.ts';
import { portsSection } from './ports.section.ts';
import type { ListedAttacks } from './read-attacks.ts';
import { settingsSection } from './settings.page.ts';

export interface ProtectPageOptions {
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

export function protectPage(options: ProtectPageOptions): Html {
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
