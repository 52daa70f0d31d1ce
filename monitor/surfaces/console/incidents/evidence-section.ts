/** The capture files of an incident, on its page. */
import type { FastifyRequest } from 'fastify';
import type { EvidenceFile } from '#monitor/evidence/index.ts';
import type { Incident } from '#monitor/incidents/index.ts';
import { type Content, formatBytes, link, section } from '#service-kit/pages/index.ts';
import { countColumn, dataTable, figureColumn, momentColumn, timeColumn } from '#service-kit/web/index.ts';
import { incidentHref } from '../parts/incident-text.ts';

export interface EvidenceSection {
  incident: Incident;
  evidence: readonly EvidenceFile[];
  sensors: ReadonlyMap<number, { hostName: string; isRevoked: boolean }>;
  viewer: { canChange: boolean };
  nowMs: number;
}

export const evidenceHref = (incident: Incident, { id }: EvidenceFile) =>
  `${incidentHref(incident)}/evidence/${id}`;

export function evidenceSection(request: FastifyRequest, page: EvidenceSection): Content {
  const { incident, evidence, sensors, viewer, nowMs } = page;
  if (incident.isDrill || incident.severity !== 'attack') return false;
  const files = dataTable<EvidenceFile>(request, {
    id: 'evidence',
    caption: 'Capture files',
    card: { line: ['packets', 'size', 'until'] },
    rows: evidence,
    columns: [
      {
        key: 'sensor',
        header: 'Sensor',
        cell: (row) => {
          const text = `${sensors.get(row.sensorId)?.hostName ?? `sensor ${row.sensorId}`}, ${row.capture}`;
          return viewer.canChange ? link(evidenceHref(incident, row), text) : text;
        },
        value: (row) => sensors.get(row.sensorId)?.hostName ?? null,
      },
      timeColumn('from', 'First packet', (row) => row.firstPacketAtMs, {
        field: 'first_packet_at',
        precision: 'seconds',
      }),
      countColumn('packets', 'Packets', (row) => row.packets),
      figureColumn('size', 'Size', (row) => row.fileBytes, formatBytes, { field: 'bytes' }),
      momentColumn('until', 'Deleted', (row) => row.keptUntilMs, nowMs, { field: 'kept_until' }),
      ...(viewer.canChange
        ? [
            {
              key: 'download',
              header: 'Download',
              kind: 'actions' as const,
              cell: (row: EvidenceFile) =>
                link(`${evidenceHref(incident, row)}/download`, 'Download', { kind: 'button' }),
            },
          ]
        : []),
    ],
    empty: emptyState(incident),
  });
  return section(
    {
      title: 'Evidence',
      description: viewer.canChange
        ? `The first packets ${incident.direction === 'inbound' ? 'to' : 'from'} the target after the detection, ordinary ones among them: at most 2,000 of each interface, 256 bytes of each.`
        : 'The first packets after the detection. Only operators read and download them.',
    },
    files,
  );
}

function emptyState({ state, measured }: Incident): { title: string; text: string } {
  const title = 'No capture files';
  if (!measured.hasEvidence) return { title, text: 'No sensor recorded packets of this attack.' };
  return state === 'recovered'
    ? { title, text: 'A sensor recorded packets. The file has not arrived, or was deleted.' }
    : { title, text: 'A sensor recorded packets, and sends them when the attack is over.' };
}
