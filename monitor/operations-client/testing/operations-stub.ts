/**
 * A real HTTP server that answers or fails like operations. Only for tests.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { IncidentOutcome, IncidentsRequest } from '#contracts/admin-api/incidents.ts';
import type { InventoryChange } from '#contracts/admin-api/inventory-changes.ts';
import type {
  DeliveredScan,
  PortScanReceipt,
  PortScansRequest,
  ScanRequest,
  ScanRequestOutcome,
  ScanRequestUpdate,
  ScanRequestUpdates,
} from '#contracts/admin-api/port-scans.ts';
import type {
  AllocationTarget,
  InventoryVm,
  ReceiptOutcome,
  TelemetryRequest,
} from '#contracts/admin-api/schemas.ts';
import type {
  Projection,
  ProjectionOutcome,
  VulnerabilitiesRequest,
} from '#contracts/admin-api/vulnerabilities.ts';
import { mintCredential } from '#service-kit/credentials/index.ts';

export interface OperationsStub extends AsyncDisposable {
  readonly url: string;
  readonly token: string;
  capabilities: Record<string, true | number>;
  vms: InventoryVm[];
  /** Changes of servers, in the order of their positions. */
  changes: InventoryChange[];
  targets: AllocationTarget[];
  /** Items of one page of a listing. */
  pageSize: number;
  /** Complete minute requests. */
  readonly posted: TelemetryRequest[];
  /** The answer of the next minute requests for a target. */
  receipt: (request: TelemetryRequest) => ReceiptOutcome;
  /** Complete incident requests. */
  readonly postedIncidents: IncidentsRequest[];
  /** The outcome of the next incidents. */
  incidentOutcome: (incident: IncidentsRequest['incidents'][number]) => IncidentOutcome;
  /** Scan requests that are not final. */
  scanRequests: ScanRequest[];
  /** Complete updates of scan requests. */
  readonly postedUpdates: ScanRequestUpdates[];
  /** The outcome of the next updates. */
  updateOutcome: (update: ScanRequestUpdate) => ScanRequestOutcome;
  /** Complete requests with results of port scans. */
  readonly postedScans: PortScansRequest[];
  /** The receipt of the next results. */
  scanReceipt: (result: DeliveredScan) => PortScanReceipt;
  /** Complete requests with assessments. */
  readonly postedProjections: VulnerabilitiesRequest[];
  /** The outcome of the next assessments. */
  projectionOutcome: (projection: Projection) => ProjectionOutcome;
  /** Handles a request; returns true when it has answered, or never will. */
  intercept: (request: IncomingMessage, response: ServerResponse, path: string, body: string) => boolean;
}

export const allCapabilities: Record<string, true | number> = {
  vm_inventory: true,
  vm_inventory_version: 1,
  vm_inventory_changes: true,
  vm_inventory_changes_version: 1,
  protect_telemetry_ingest: true,
  protect_telemetry_contract_version: 1,
  protect_application_identity: true,
  protect_application_identity_version: 1,
  ddos_incident_ingest: true,
  ddos_incident_contract_version: 1,
  protect_port_scan_ingest: true,
  protect_port_scan_ingest_version: 1,
  protect_vulnerability_ingest: true,
  protect_vulnerability_contract_version: 1,
};

export async function startOperationsStub(): Promise<OperationsStub> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString('utf8');
    const url = new URL(request.url!, 'http://operations');
    const path = url.pathname.replace('/api/admin/v1', '');
    if (stub.intercept(request, response, path, body)) return;
    if (request.headers.authorization !== `Bearer ${stub.token}`) return send(response, 401, {});
    const afterId = Number(url.searchParams.get('after_id') ?? 0);
    if (path === '/discovery/') {
      return send(response, 200, {
        project: { id: 1, name: 'monitor' },
        capabilities: stub.capabilities,
      });
    }
    if (path === '/inventory/vms/') {
      return send(response, 200, {
        ...pageOf('vms', stub.vms, afterId, stub.pageSize),
        as_of: new Date().toISOString(),
      });
    }
    if (path === '/inventory/changes/') return send(response, 200, pageOfChanges(stub, url));
    if (path === '/protect/targets/')
      return send(response, 200, pageOf('targets', stub.targets, afterId, stub.pageSize));
    if (path === '/protect/telemetry/') {
      const posted = JSON.parse(body) as TelemetryRequest;
      stub.posted.push(posted);
      const receipt = stub.receipt(posted);
      return send(response, 200, { receipts: posted.targets.map(({ id }) => ({ id, receipt })) });
    }
    if (path === '/protect/incidents/') {
      const posted = JSON.parse(body) as IncidentsRequest;
      stub.postedIncidents.push(posted);
      const outcomes = posted.incidents.map((incident) => {
        const outcome = stub.incidentOutcome(incident);
        return { id: incident.id, outcome, allocation_id: outcome === 'unmatched' ? null : 1 };
      });
      return send(response, 200, { outcomes });
    }
    if (path === '/protect/scan-requests/') {
      if (request.method === 'GET') return send(response, 200, pageOfScans(stub, url));
      const posted = JSON.parse(body) as ScanRequestUpdates;
      stub.postedUpdates.push(posted);
      const outcomes = posted.updates.map((update) => ({
        id: update.id,
        outcome: stub.updateOutcome(update),
      }));
      return send(response, 200, { outcomes });
    }
    if (path === '/protect/port-scans/') {
      const posted = JSON.parse(body) as PortScansRequest;
      stub.postedScans.push(posted);
      const receipts = posted.results.map((result) => ({
        scan_id: result.scan_id,
        receipt: stub.scanReceipt(result),
      }));
      return send(response, 200, { receipts });
    }
    if (path === '/protect/vulnerabilities/') {
      const posted = JSON.parse(body) as VulnerabilitiesRequest;
      stub.postedProjections.push(posted);
      const acknowledgements = posted.projections.map((projection) => ({
        allocation_id: projection.allocation_id,
        scan_id: projection.scan_id,
        outcome: stub.projectionOutcome(projection),
      }));
      return send(response, 200, { acknowledgements });
    }
    return send(response, 404, {});
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const stub: OperationsStub = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    token: mintCredential('svcadm').token,
    capabilities: { ...allCapabilities },
    vms: [],
    changes: [],
    targets: [],
    pageSize: 2,
    posted: [],
    receipt: () => 'accepted',
    postedIncidents: [],
    incidentOutcome: () => 'applied',
    scanRequests: [],
    postedUpdates: [],
    updateOutcome: () => 'accepted',
    postedScans: [],
    scanReceipt: () => 'accepted',
    postedProjections: [],
    projectionOutcome: () => 'accepted',
    intercept: () => false,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
  return stub;
}

export function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function pageOfScans({ scanRequests, pageSize }: OperationsStub, { searchParams }: URL) {
  const from = Number(searchParams.get('after') ?? 0);
  const to = from + pageSize;
  return {
    requests: scanRequests.slice(from, to),
    next_after: to < scanRequests.length ? String(to) : null,
  };
}

function pageOfChanges({ changes, pageSize }: OperationsStub, { searchParams }: URL) {
  const from = Number(searchParams.get('after') ?? 0);
  const to = Math.min(from + pageSize, changes.length);
  return { changes: changes.slice(from, to), next_after: String(to), has_more: to < changes.length };
}

function pageOf<T extends { id: number }>(name: string, items: readonly T[], afterId: number, size: number) {
  const page = items
    .filter((item) => item.id > afterId)
    .sort((a, b) => a.id - b.id)
    .slice(0, size);
  const hasMore = items.some((item) => item.id > (page.at(-1)?.id ?? Number.POSITIVE_INFINITY));
  return { [name]: page, next_after_id: hasMore ? page.at(-1)!.id : null };
}
