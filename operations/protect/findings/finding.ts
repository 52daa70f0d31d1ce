/** What a customer is shown of potential vulnerabilities, and the order of severities. */
import { type FindingSeverity, findingSeverities } from '#contracts/findings.ts';
import type { ScanTransport } from '#contracts/port-scan/index.ts';

/** 0 for what is not rated. */
export function rankOf(severity: FindingSeverity | null): number {
  return severity === null ? 0 : findingSeverities.indexOf(severity);
}

/** The server of a page or a call; the caller has looked it up for this actor. */
export interface FindingSubject {
  serverId: number;
  tenantId: number;
}

/** A finding as a caller names it. The fingerprint is that of the version that the caller has seen. */
export interface FindingKey {
  /** Null: at every address of the server. */
  address: string | null;
  transport: ScanTransport;
  port: number;
  fingerprint: string;
  cveId: string;
}
