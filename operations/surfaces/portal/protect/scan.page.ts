/** What one requested scan found, as it was delivered; newer scans do not change it (NET-2.7.9). */
import type { FoundService, ServerScan } from '#operations/protect/index.ts';
import type { Server } from '#operations/views/index.ts';
import {
  type Content,
  code,
  definitionList,
  formatCount,
  type Html,
  moment,
  pageHeader,
  section,
  table,
} from '#service-kit/pages/index.ts';
import { scanBadge, scanKind, scanOutcome } from '../../parts/index.ts';
import type { Visitor } from '../guard.ts';
import { serverFrame } from '../servers/server-frame.ts';
import { answerOf, certainty } from './ports.section.ts';

export interface ScanPageOptions {
  visitor: Visitor;
  server: Server;
  scan: ServerScan;
  services: readonly FoundService[];
  nowMs: number;
}

export function scanPage({ visitor, server, scan, services, nowMs }: ScanPageOptions): Html {
  const time = (at: Date | null) => (at === null ? 'unknown' : moment(at.getTime(), nowMs));
  const header = pageHeader({ title: `Port scan of ${scan.address}`, state: undefined });
  return serverFrame({ visitor, server, tab: 'protect', part: 'Port scan' }, header, [
    section({ title: 'Scan', id: 'scan' }, [
      definitionList([
        { term: 'State', value: scanBadge(scan) },
        { term: 'Kind', value: scanKind(scan) },
        { term: 'Address', value: code(scan.address) },
        { term: 'Requested', value: time(scan.requestedAt) },
        { term: 'Started', value: time(scan.startedAt) },
        { term: 'Ended', value: time(scan.finishedAt) },
        { term: 'Result', value: scanOutcome(scan) },
        { term: 'Ports asked', value: askedOf(scan) },
        { term: 'Scan id', value: code(scan.id) },
      ]),
    ]),
    section(
      {
        title: 'Open ports',
        id: 'found',
        description: 'As this scan found them. Later scans do not change this list.',
      },
      table<FoundService>({
        caption: 'Open ports that this scan found',
        card: { line: ['service', 'sure'] },
        columns: [
          {
            key: 'port',
            header: 'Port',
            kind: 'code',
            cell: ({ transport, port }) => code(`${transport}/${port}`),
          },
          { key: 'service', header: 'Service', cell: answerOf },
          { key: 'sure', header: 'Certainty', cell: certainty },
          { key: 'since', header: 'Open since', cell: ({ firstObservedAt }) => time(firstObservedAt) },
        ],
        rows: services,
        isStacked: true,
        empty: { title: 'No open ports', text: 'No port of this address answered the scan.' },
      }),
    ),
  ]);
}

function askedOf({ result }: ServerScan): Content {
  if (result === null || result.phases.length === 0) return 'unknown';
  return result.phases
    .map(
      ({ transport, ports_asked, filtered, silent }) =>
        `${transport.toUpperCase()}: ${formatCount(ports_asked)} asked, ${formatCount(filtered)} filtered, ${formatCount(silent)} silent`,
    )
    .join('; ');
}
