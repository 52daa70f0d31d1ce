/**
 * Tells a customer what a scan changed: newly open and closed ports, and that a requested scan has ended.
 *
 * What is told is queued in the transaction that stores the result, so once each however often it is delivered. Alerts about
 * ports are off until the customer switches them on, and begin with scans that ended after that. Results older than a day
 * are on the page only.
 */
import type { DeliveredScan } from '#contracts/admin-api/port-scans.ts';
import { emit } from '#operations/events/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { findSettings, portChannelsSince } from '../settings/index.ts';
import type { PortRow } from './merge-ports.ts';
import * as store from './port-store.ts';

export interface AlertDeps {
  /** Whether mails can be sent at all. */
  canMail: boolean;
}

export interface AlertInput {
  of: { serverId: number; tenantId: number };
  scan: DeliveredScan;
  opened: readonly PortRow[];
  closed: readonly PortRow[];
  /** The result has ended a request. */
  endsRequest: boolean;
  nowMs: number;
}

const lateMs = 24 * 3_600_000;
/** Webhook events of one scan about opened ports, and about closed ones; the page and the API have all. */
export const eventsMax = 50;

export async function alertCustomer(deps: AlertDeps, tx: Queryable, input: AlertInput): Promise<void> {
  const { of, scan, opened, closed, endsRequest, nowMs } = input;
  const finishedAt = new Date(scan.finished_at);
  if (finishedAt.getTime() < nowMs - lateMs) return;
  const settings = await findSettings(tx, of);
  if (!settings.viewsOn) return;
  const about = { serverId: of.serverId, scanId: scan.scan_id, address: scan.address };
  const channels = portChannelsSince(settings, finishedAt);
  if (channels.includes('webhook')) {
    for (const { transport, port } of opened.slice(0, eventsMax))
      await emit(tx, { type: 'server.port_opened', ...about, transport, port });
    for (const { transport, port } of closed.slice(0, eventsMax))
      await emit(tx, { type: 'server.port_closed', ...about, transport, port });
  }
  if (endsRequest) await emit(tx, { type: 'server.scan_completed', ...about });
  if (opened.length > 0 && channels.includes('mail') && deps.canMail)
    await store.queueMails(tx, scan.scan_id, of.serverId);
}
