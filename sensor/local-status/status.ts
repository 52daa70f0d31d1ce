import type { CaptureState, LocalWindow } from '#sensor/collection/index.ts';
import type { ActiveIncident } from '#sensor/detection/index.ts';
import type { EvidenceStatus } from '#sensor/evidence/index.ts';
import type { FilterStatus } from '#sensor/filter/index.ts';
import type { LiveStatus } from '#sensor/live/index.ts';
import type { ScanStatus } from '#sensor/scanner/index.ts';
import type { SpoolStatus } from '#sensor/spool/index.ts';

export interface SensorStatus {
  version: string;
  monitor: string;
  site: string;
  startedAtMs: number;
  captures: CaptureState[];
  spool: Pick<SpoolStatus, 'pendingUploads' | 'pendingBytes' | 'roomMinutes'>;
  live: LiveStatus;
  incidents: ActiveIncident[];
  /** Null where scans are switched off; absent from a sensor before 0.1.24. */
  scans?: ScanStatus | null;
  /** Absent from a sensor before 0.1.24. */
  evidence?: EvidenceStatus;
  /** Of each uplink; absent from an older sensor. */
  filters?: FilterStatus[];
}

/** One line of the socket. */
export type StatusLine = { kind: 'status'; status: SensorStatus } | { kind: 'window'; window: LocalWindow };
