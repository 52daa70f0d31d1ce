import {
  type PortScanReceipts,
  type PortScansRequest,
  portScansContract,
} from '#contracts/admin-api/port-scans.ts';
import { defineReceiver, type FeedReceiver } from '#operations/feeds/index.ts';
import type { ProtectScans } from './protect-scans.ts';

/** The receiver of results of port scans (NET-4.f). */
export function createScansReceiver(scans: Pick<ProtectScans, 'receive'>): FeedReceiver {
  return defineReceiver<PortScansRequest, PortScanReceipts>({
    contract: portScansContract,
    hint: 'Fetch scan requests of customers and deliver results of port scans.',
    readsTargets: true,
    invalidCode: 'port_scans.invalid',
    receive: (sender, request) => scans.receive(sender, request),
  });
}
