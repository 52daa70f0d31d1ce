/**
 * What a port scan is and what it found, in the words of both wires: sensors report it to the monitor
 * (`contracts/sensor-api/port-scans.ts`), and the monitor delivers it to operations (`contracts/admin-api/port-scans.ts`).
 *
 * A scan has a profile (`common`: the 100 most used ports of TCP and of UDP; `full`: all 65,535 of both) and phases:
 * discovery finds open ports, identification asks only those what they run (NET-2.7.5).
 */
import { createHash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { Nullable, Timestamp } from '../scalars.ts';

const PortNumber = Type.Integer({ minimum: 1, maximum: 65_535 });
const strict = { additionalProperties: false } as const;
/** What a service says of itself is written by a stranger: bounded, without control characters. */
const Answer = Nullable(Type.String({ minLength: 1, maxLength: 256 }));

/** Ports that one result may name as open. */
export const scanServicesMax = 4096;

export const ScanId = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
});
export const ScanTransport = Type.Enum(['tcp', 'udp']);
export type ScanTransport = Static<typeof ScanTransport>;
export const ScanProfile = Type.Enum(['common', 'full']);
export type ScanProfile = Static<typeof ScanProfile>;

/** Ports that each profile asks of each transport. */
export const portsAsked: Readonly<Record<ScanProfile, number>> = { common: 100, full: 65_535 };

/** One discovery. `filtered`: a firewall said no. `silent`: nothing answered, so a UDP service may be there. */
export const ScanPhase = Type.Object(
  {
    transport: ScanTransport,
    ports_asked: Type.Integer({ minimum: 0, maximum: 65_535 }),
    ports_answered: Type.Integer({ minimum: 0, maximum: 65_535 }),
    filtered: Type.Integer({ minimum: 0, maximum: 65_535 }),
    silent: Type.Integer({ minimum: 0, maximum: 65_535 }),
    finished: Type.Boolean(),
  },
  strict,
);
export type ScanPhase = Static<typeof ScanPhase>;

/**
 * One open port. `method` `probed`: the service answered a probe with what it is; `table`: its name is guessed from the port
 * number and says nothing of a product. `confidence` is nmap's, 0 to 10. `cpe` are CPE 2.2 names, `cpe:/a:…`.
 */
export const ScanService = Type.Object(
  {
    transport: ScanTransport,
    port: PortNumber,
    first_observed_at: Timestamp,
    observed_at: Timestamp,
    scan_id: ScanId,
    service: Answer,
    product: Answer,
    version: Answer,
    extra_info: Answer,
    method: Type.Enum(['probed', 'table']),
    confidence: Type.Integer({ minimum: 0, maximum: 10 }),
    tunnel: Nullable(Type.String({ minLength: 1, maxLength: 16 })),
    cpe: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 4 }),
  },
  strict,
);
export type ScanService = Static<typeof ScanService>;

/**
 * Whether the scan read what answers at the port. A guess from the port's number is no reading, nor is a connection that was
 * closed before a word (`tcpwrapped`).
 */
export const isIdentified = ({ method, service }: Pick<ScanService, 'method' | 'service'>): boolean =>
  method === 'probed' && service !== 'tcpwrapped';

/**
 * Names the software that answers at a port: SHA-256 of product and version, in hexadecimal. The version is the text that the
 * service shows, the revision of a package included (`9.6p1 Ubuntu 3ubuntu13.5`). Further text, such as an uptime, is no part
 * of it, because choices that customers made for a software would end with every scan.
 */
export function fingerprintSoftware({ product, version }: Pick<ScanService, 'product' | 'version'>): string {
  return createHash('sha256')
    .update(`${product ?? ''}\n${version ?? ''}`)
    .digest('hex');
}

/** What a reader of a result should know. `filtered_ports` and `silent_udp` do not make a scan partial (NET-3.1). */
export const scanNotes = [
  'filtered_ports',
  'silent_udp',
  'paused',
  'identification_failed',
  'interrupted',
  'output_cut',
  'host_pressure',
  'withdrawn',
] as const;
export const ScanNote = Type.Enum([...scanNotes]);
export type ScanNote = Static<typeof ScanNote>;

/** `complete`: every phase ended, also where ports were filtered or silent; `partial`: interrupted or incomplete (NET-3.1). */
export const ScanOutcome = Type.Enum(['complete', 'partial']);
export type ScanOutcome = Static<typeof ScanOutcome>;

/** The part of a result that both wires carry. `phases`: one for each discovery that began. */
export const scanFindings = {
  profile: ScanProfile,
  state: ScanOutcome,
  started_at: Timestamp,
  finished_at: Timestamp,
  phases: Type.Array(ScanPhase, { maxItems: 2 }),
  services: Type.Array(ScanService, { maxItems: scanServicesMax }),
  notes: Type.Array(ScanNote, { maxItems: scanNotes.length }),
};
