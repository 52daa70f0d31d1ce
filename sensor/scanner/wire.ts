/** Words of the wire that the scanner uses (`contracts/port-scan`, `contracts/sensor-api/port-scans`). */
import type { ScanTransport } from '#contracts/port-scan/index.ts';

export type {
  ScanNote,
  ScanPhase,
  ScanProfile,
  ScanService,
  ScanTransport,
} from '#contracts/port-scan/index.ts';
export { portsAsked, scanServicesMax } from '#contracts/port-scan/index.ts';
export type { ScanPause, ScanStep } from '#contracts/sensor-api/port-scans.ts';

/** An open port of a heartbeat. */
export interface ScanFinding {
  transport: ScanTransport;
  port: number;
}
