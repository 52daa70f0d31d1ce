/** What port scans need from the rest of the program. */
import type { Sites } from '#monitor/sites/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

export interface ScansDeps {
  db: () => Queryable;
  /** Connections that only read, for plans (NET-5.3). */
  reader: () => Queryable;
  sites: Pick<Sites, 'find'>;
  /** Documentation ranges count as globally routable: lab and demo worlds alone. */
  documentationIsGlobal: boolean;
  /** A result was stored: called in its transaction, after what it found. */
  onResult?: (trx: Queryable, server: ScannedServer) => Promise<void>;
}

/** The server that a result is about. */
export interface ScannedServer {
  siteId: number;
  clusterId: number;
  vmId: number;
}
