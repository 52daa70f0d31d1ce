/** The packets of one capture file. */
import type { FastifyRequest } from 'fastify';
import type { DescribedPacket, EvidenceFile } from '#monitor/evidence/index.ts';
import type { Incident } from '#monitor/incidents/index.ts';
import {
  banner,
  type Content,
  formatBytes,
  formatCount,
  formatTime,
  html,
  link,
  pageHeader,
  section,
} from '#service-kit/pages/index.ts';
import { dataTable, pagedRows } from '#service-kit/web/index.ts';
import { incidentHref } from '../parts/incident-text.ts';
import { evidenceHref } from './evidence-section.ts';

export interface EvidencePage {
  incident: Incident;
  file: EvidenceFile;
  /** Or why they can't be read. */
  packets: readonly DescribedPacket[] | string;
  hostName: string;
}

const packetsShown = 100;
const none = html`<span class="hint">none</span>`;

export function evidencePage(request: FastifyRequest, page: EvidencePage): Content {
  const { incident, file, packets, hostName } = page;
  const isReadable = typeof packets !== 'string';
  return [
    pageHeader({
      title: `Packets of ${incident.target.value}`,
      state: {
        tone: 'neutral',
        text: `${hostName}, ${file.capture}: ${formatCount(file.packets)} packets, ${formatBytes(file.fileBytes)}, deleted on ${formatTime(file.keptUntilMs)}`,
      },
      actions: [
        link(incidentHref(incident), 'Incident', { kind: 'button' }),
        isReadable && link(`${evidenceHref(incident, file)}/download`, 'Download', { kind: 'button' }),
      ],
    }),
    isReadable
      ? section({ title: 'Packets' }, packetTable(request, packets))
      : banner({ tone: 'warn', title: 'The file can not be read', text: packets }),
  ];
}

const clockText = ({ atMs, microseconds }: DescribedPacket) =>
  `${new Date(atMs).toISOString().slice(11, 23)}${String(microseconds).padStart(3, '0')}`;

function packetTable(request: FastifyRequest, packets: readonly DescribedPacket[]): Content {
  return dataTable<DescribedPacket>(request, {
    ...pagedRows(request, 'packets', packets, packetsShown),
    caption: 'Packets',
    card: { line: ['source', 'destination', 'protocol'] },
    refreshSeconds: 0,
    columns: [
      {
        key: 'at',
        header: 'Time',
        unit: 'UTC',
        kind: 'code',
        cell: clockText,
        value: (row) => `${new Date(row.atMs).toISOString().slice(0, 11)}${clockText(row)}Z`,
      },
      {
        key: 'source',
        header: 'Source',
        kind: 'code',
        cell: (row) => row.source ?? none,
        value: (row) => row.source,
      },
      {
        key: 'destination',
        header: 'Destination',
        kind: 'code',
        cell: (row) => row.destination ?? none,
        value: (row) => row.destination,
      },
      { key: 'protocol', header: 'Protocol', cell: (row) => row.protocol, value: (row) => row.protocol },
      {
        key: 'length',
        header: 'Length',
        unit: 'bytes',
        kind: 'figure',
        cell: (row) => formatCount(row.wireLength),
        field: 'bytes',
        value: (row) => row.wireLength,
      },
      { key: 'info', header: 'Header', cell: (row) => row.info || none, value: (row) => row.info },
    ],
    empty: { title: 'No packets', text: 'The file has none.' },
  });
}
