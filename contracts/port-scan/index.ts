/**
 * What a port scan is and what it found, in the words of both wires: sensors report it to the monitor
 * (`contracts/sensor-api/port-scans.ts`), and the monitor delivers it to operations (`contracts/admin-api/port-scans.ts`).
 *
 * A scan has a profile (`common`: the 100 most used ports of TCP and of UDP; `full`: all 65,535 of both) and phases:
 * discovery finds open ports, identification asks only those what they run (NET-2.7.5).
 */
import { createHash } from 'node:crypto';
import { type Static, Type } from 'typebox';
import { transports } from '../ip-protocols.ts';
import { Nullable, Strict, Timestamp } from '../scalars.ts';

const PortNumber = Type.Integer({ minimum: 1, maximum: 65_535 });
/** What a service says of itself is written by a stranger: bounded, without control characters. */
const Answer = Nullable(Type.String({ minLength: 1, maxLength: 256 }));

/** Ports that one result may name as open. */
export const scanServicesMax = 4096;

export const ScanId = Type.String({
  pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$',
});
export const ScanTransport = Type.Enum([...transports]);
export type ScanTransport = Static<typeof ScanTransport>;
export const scanProfiles = ['common', 'full'] as const;
export const ScanProfile = Type.Enum([...scanProfiles]);
export type ScanProfile = Static<typeof ScanProfile>;
/** `probed`: the service answered a probe with what it is; `table`: its name is guessed from the port number. */
export const scanMethods = ['probed', 'table'] as const;
export type ScanMethod = (typeof scanMethods)[number];
/** At operations. `closed`: a later scan asked for the port and did not find it open. */
export const portStates = ['open', 'closed'] as const;
export type PortState = (typeof portStates)[number];
/** At operations. `manual`: requested; `automatic`: for a new address; `routine`: hourly or daily. */
export const scanKinds = ['manual', 'automatic', 'routine'] as const;
export type ScanKind = (typeof scanKinds)[number];
/** Of a request at operations. `expired`: not started within the start window. */
export const scanStates = ['queued', 'running', 'complete', 'partial', 'expired', 'cancelled'] as const;
export type ScanState = (typeof scanStates)[number];

/** Ports that each profile asks of each transport. */
export const portsAsked: Readonly<Record<ScanProfile, number>> = { common: 100, full: 65_535 };

/** One discovery. `filtered`: a firewall said no. `silent`: nothing answered, so a UDP service may be there. */
export const ScanPhase = Strict({
  transport: ScanTransport,
  ports_asked: Type.Integer({ minimum: 0, maximum: 65_535 }),
  ports_answered: Type.Integer({ minimum: 0, maximum: 65_535 }),
  filtered: Type.Integer({ minimum: 0, maximum: 65_535 }),
  silent: Type.Integer({ minimum: 0, maximum: 65_535 }),
  finished: Type.Boolean(),
});
export type ScanPhase = Static<typeof ScanPhase>;

/**
 * One open port. `method` `probed`: the service answered a probe with what it is; `table`: its name is guessed from the port
 * number and says nothing of a product. `confidence` is nmap's, 0 to 10. `cpe` are CPE 2.2 names, `cpe:/a:…`.
 */
export const ScanService = Strict({
  transport: ScanTransport,
  port: PortNumber,
  first_observed_at: Timestamp,
  observed_at: Timestamp,
  scan_id: ScanId,
  service: Answer,
  product: Answer,
  version: Answer,
  extra_info: Answer,
  method: Type.Enum([...scanMethods]),
  confidence: Type.Integer({ minimum: 0, maximum: 10 }),
  tunnel: Nullable(Type.String({ minLength: 1, maxLength: 16 })),
  cpe: Type.Array(Type.String({ minLength: 1, maxLength: 256 }), { maxItems: 4 }),
});
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

/** What a reader of a result should know, in words. `filtered_ports` and `silent_udp` do not make a scan partial (NET-3.1). */
export const scanNotes = {
  filtered_ports: 'a firewall filtered some ports',
  silent_udp: 'some UDP ports did not respond and may be open',
  paused: 'paused for a while',
  identification_failed: 'services could not be identified',
  interrupted: 'interrupted',
  output_cut: 'too much output',
  host_pressure: 'the hypervisor was busy',
  withdrawn: 'the server stopped or moved',
} as const;
export type ScanNote = keyof typeof scanNotes;
const noteNames = Object.keys(scanNotes) as ScanNote[];

/** A note of a newer sensor reads as its name. */
export const describeNote = (note: string): string =>
  scanNotes[note as ScanNote] ?? note.replaceAll('_', ' ');

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
  notes: Type.Array(Type.Enum(noteNames), { maxItems: noteNames.length }),
};
