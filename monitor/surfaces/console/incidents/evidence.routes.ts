/** `/sites/{id}/incidents/{incident}/evidence/{file}`: the packets of a capture file, and the file itself. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { evidenceContentType } from '#contracts/sensor-api/evidence.ts';
import type { DescribedPacket, EvidenceFile } from '#monitor/evidence/index.ts';
import type { Incident, Incidents, StoredIncident } from '#monitor/incidents/index.ts';
import { nameSensors } from '#monitor/views/sensor-store.ts';
import type { App } from '#service-kit/http/index.ts';
import { HttpError } from '#service-kit/http/index.ts';
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
import {
  countColumn,
  dataTable,
  figureColumn,
  momentColumn,
  pagedRows,
  textColumn,
  timeColumn,
} from '#service-kit/web/index.ts';
import type { ConsoleDeps } from '../deps.ts';
import { notFound, SiteParams, sendConsolePage, siteOf } from '../frame.ts';
import { viewerOf } from '../guard.ts';
import { classText, incidentHref } from '../parts/incident-text.ts';

export const IncidentParams = Type.Object({
  ...SiteParams.properties,
  incidentId: Type.String({ pattern: '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' }),
});

const Params = Type.Object({ ...IncidentParams.properties, fileId: IncidentParams.properties.incidentId });
const path = '/sites/:siteId/incidents/:incidentId/evidence/:fileId';

export function registerEvidence(app: App, deps: ConsoleDeps): void {
  const { evidence, incidents, sites } = deps;

  /** The file, for a person who may read it. */
  async function find(request: FastifyRequest, ids: { siteId: number; incidentId: string; fileId: string }) {
    const { actor, canChange } = viewerOf(request);
    if (!canChange)
      throw new HttpError(403, { code: 'read_only', message: 'Only operators read capture files.' });
    const site = await siteOf(sites, ids.siteId);
    const incident = await findIncident(incidents, site.id, ids.incidentId);
    const { views } = await incidents.readDetail(incident.id);
    const files = await evidence.list(site.id, observationsOf(views));
    const file = files.find(({ id }) => id === ids.fileId);
    if (!file) throw notFound('This capture file does not exist.');
    return { actor, site, incident, file };
  }

  app.get(path, { schema: { params: Params } }, async (request, reply) => {
    const { actor, site, incident, file } = await find(request, request.params);
    const packets = await evidence.readPackets(actor, file).catch(sentenceOf);
    const sensor = (await nameSensors(deps.db(), [file.sensorId])).get(file.sensorId);
    const hostName = sensor?.hostName ?? `sensor ${file.sensorId}`;
    const content = evidencePage(request, { incident, file, packets, hostName });
    const title = `Packets: ${classText(incident)} ${incident.target.value}`;
    return sendConsolePage(reply, { title, site: { site, page: 'incidents' } }, content);
  });

  app.get(`${path}/download`, { schema: { params: Params } }, async (request, reply) => {
    const { actor, incident, file } = await find(request, request.params);
    try {
      const bytes = await evidence.download(actor, file, incident.id);
      return sendCapture(reply, nameOf(file), bytes);
    } catch (error) {
      throw notFound(sentenceOf(error));
    }
  });
}

/** The incidents of sensors that an incident is made of. */
export function observationsOf(views: readonly { sensorId: number; said: { id: string } }[]) {
  return views.map(({ sensorId, said }) => ({ sensorId, observationId: said.id }));
}

/** Why a file can't be read. Throws what is no fault of a file or its store. */
function sentenceOf(error: unknown): string {
  if (error instanceof CodedError && error.code.startsWith('evidence.')) return error.message;
  throw error;
}

function nameOf({ capture, firstPacketAtMs }: EvidenceFile): string {
  const at = new Date(firstPacketAtMs).toISOString().slice(0, 19).replaceAll(/[-:]/g, '');
  return `incident-${at}Z-${capture.replaceAll(/[^\w.-]/g, '_')}.pcap`;
}

function sendCapture(reply: FastifyReply, name: string, bytes: Uint8Array): FastifyReply {
  return reply
    .type(evidenceContentType)
    .headers({
      'content-disposition': `attachment; filename="${name}"`,
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    })
    .send(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
}

interface EvidencePage {
  incident: Incident;
  file: EvidenceFile;
  /** Or why they can't be read. */
  packets: readonly DescribedPacket[] | string;
  hostName: string;
}

/** The packets of one capture file. */
const packetsShown = 100;
const none = html`<span class="hint">none</span>`;

function evidencePage(request: FastifyRequest, page: EvidencePage): Content {
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
      textColumn('source', 'Source', (row) => row.source, { kind: 'code', show: (source) => source ?? none }),
      textColumn('destination', 'Destination', (row) => row.destination, {
        kind: 'code',
        show: (destination) => destination ?? none,
      }),
      { key: 'protocol', header: 'Protocol', cell: (row) => row.protocol, value: (row) => row.protocol },
      countColumn('length', 'Length', (row) => row.wireLength, { unit: 'bytes', field: 'bytes' }),
      { key: 'info', header: 'Header', cell: (row) => row.info || none, value: (row) => row.info },
    ],
    empty: { title: 'No packets', text: 'The file has none.' },
  });
}

// The capture files of an incident, on its page.

interface EvidenceSection {
  incident: Incident;
  evidence: readonly EvidenceFile[];
  sensors: ReadonlyMap<number, { hostName: string; isRevoked: boolean }>;
  viewer: { canChange: boolean };
  nowMs: number;
}

const evidenceHref = (incident: Incident, { id }: EvidenceFile) => `${incidentHref(incident)}/evidence/${id}`;

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

/** The incident of this site, or a 404. */
export async function findIncident(
  incidents: Pick<Incidents, 'find'>,
  siteId: number,
  incidentId: string,
): Promise<StoredIncident> {
  const incident = await incidents.find(siteId, incidentId);
  if (incident) return incident;
  throw notFound('This incident does not exist.');
}
