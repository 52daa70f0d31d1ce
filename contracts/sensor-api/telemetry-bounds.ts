/** How much a telemetry upload and a live upload may hold; checked before they are decoded. */
import {
  decisionSecondsMax,
  detectorRowsMax,
  epochPrefixesMax,
  epochsMax,
  incidentSecondsMax,
  incidentsMax,
  metricsMax,
  ordinaryRules,
  remotesMax,
  vectorPortsMax,
  vectorsMax,
} from './detection.ts';
import { liveHostsMax, liveWindowsMax } from './live.ts';
import { LiveUploadSchema } from './live_pb.js';
import {
  captureMinutesMax,
  gapsMax,
  hostsMax,
  interfaceAddressesMax,
  interfacesMax,
  neighboursMax,
  probeResultsMax,
  spoofedRowsMax,
  usageRowsMax,
} from './telemetry.ts';
import { TelemetryUploadSchema } from './telemetry_pb.js';
import { compileBounds, type ListLimits } from './wire-bounds.ts';

const usageColumns = [
  ...['client', 'server', 'name', 'protocol', 'server_port_plus_one', 'direction', 'evidence'],
  ...['client_bytes', 'server_bytes', 'packets', 'client_last_sent', 'server_last_sent'],
];
const probeColumns = [
  ...['probe', 'minute', 'first_sent', 'sent', 'lost', 'rtt_min', 'rtt_median', 'rtt_max', 'failure'],
];
const liveColumns = ['address', 'rx_bytes', 'tx_bytes', 'packets'];

/** The plain row of each element of the first column. */
const plainRowBytes = 224;

function columnsOf(message: string, columns: readonly string[], max: number, label: string): ListLimits {
  return Object.fromEntries(
    columns.map((column, i) => [
      `${message}.${column}`,
      { max, label, plainBytes: i === 0 ? plainRowBytes : 0 },
    ]),
  );
}

export const uploadBounds = compileBounds(TelemetryUploadSchema, {
  'TelemetryUpload.minutes': { max: captureMinutesMax },
  'TelemetryUpload.gaps': { max: gapsMax, plainBytes: 128 },
  'CaptureMinute.hosts': { max: hostsMax, plainBytes: 224 },
  // Two addresses and a name for each row.
  'UsageColumns.texts': { max: 3 * usageRowsMax, label: 'usage.texts' },
  ...columnsOf('UsageColumns', usageColumns, usageRowsMax, 'usage'),
  ...columnsOf(
    'SpoofedColumns',
    ['device_key', 'address', 'bytes', 'packets', 'reason'],
    spoofedRowsMax,
    'spoofed',
  ),
  'HostInventory.interfaces': { max: interfacesMax, label: 'inventory.interfaces', plainBytes: 224 },
  'HostInventory.neighbours': { max: neighboursMax, label: 'inventory.neighbours', plainBytes: 128 },
  'HostInterface.addresses': { max: interfaceAddressesMax, label: 'inventory.interfaces.addresses' },
  ...columnsOf('ProbeColumns', probeColumns, probeResultsMax, 'probes'),
  'TelemetryUpload.incidents': { max: incidentsMax, plainBytes: 768 },
  'Incident.vectors': { max: vectorsMax, label: 'incidents.vectors', plainBytes: 256 },
  'IncidentVector.ports': { max: vectorPortsMax, label: 'incidents.vectors.ports' },
  'VectorDetails.source_ports': { max: vectorPortsMax, label: 'incidents.vectors.source_ports' },
  'VectorDetails.protocols': { max: vectorPortsMax, label: 'incidents.vectors.protocols' },
  ...columnsOf('Incident', ['remote_prefix', 'remote_share'], remotesMax, 'incidents.remotes'),
  ...columnsOf('IncidentSeconds', ['at', 'bps', 'pps'], incidentSecondsMax, 'incidents.seconds'),
  'IncidentReason.ratios': { max: decisionSecondsMax, label: 'incidents.reason.ratios' },
  ...columnsOf(
    'IncidentReason',
    ['ordinary_rule', 'ordinary_packets', 'ordinary_bytes'],
    // A newer sensor may have more rules than we know.
    4 * Object.keys(ordinaryRules).length,
    'incidents.reason.ordinary',
  ),
  'TelemetryUpload.epochs': { max: epochsMax, plainBytes: 128 },
  'DetectorEpoch.prefixes': { max: epochPrefixesMax, label: 'epochs.prefixes' },
  ...columnsOf(
    'DetectorMinute',
    ['address', 'is_outbound', 'attack_bytes', 'attack_packets'],
    detectorRowsMax,
    'detector',
  ),
  // A newer sensor may have more metrics than we know.
  'DetectorMinute.maxima': { max: metricsMax, label: 'detector.maxima' },
  'DetectorMaxima.one_second': { max: detectorRowsMax, label: 'detector.maxima' },
  'DetectorMaxima.ten_seconds': { max: detectorRowsMax, label: 'detector.maxima' },
});

export const liveBounds = compileBounds(LiveUploadSchema, {
  'LiveUpload.windows': { max: liveWindowsMax },
  'SensorCondition.captures': { max: captureMinutesMax, label: 'condition.captures', plainBytes: 96 },
  ...columnsOf('LiveHosts', liveColumns, liveHostsMax, 'hosts'),
});
