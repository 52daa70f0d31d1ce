/**
 * Tells a customer what a scan changed: newly open and closed ports, and that a requested scan has ended.
 *
 * What is told is queued in the transaction that stores the result, so once each however often it is delivered. Alerts about
 * ports are off until the customer switches them on, and begin with scans that ended after that. Results older than a day
 * are on the page only.
 */

import { oneLine } from '#common/text/index.ts';
import type { DeliveredScan } from '#contracts/admin-api/port-scans.ts';
import { emit } from '#operations/events/index.ts';
import { type DuePortMail, findDuePortMail } from '#operations/views/alert-mail-store.ts';
import type { Mail } from '#service-kit/mail/index.ts';
import { formatCount, formatTime } from '#service-kit/pages/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type AlertMailKind, writeAlertMail } from '../alert-mails/index.ts';
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

/** Ports in one mail; the page has all. */
const listedMax = 20;

/** What people are mailed about newly open ports. */
export const portMails: AlertMailKind<DuePortMail> = {
  name: 'port mails',
  about: 'open ports',
  table: 'port_mails',
  workers: 1,
  find: findDuePortMail,
  write: portMail,
};

function portMail(due: DuePortMail, linkTo: (path: string) => string): Mail {
  const server = oneLine(due.serverName);
  const { openedCount: count, address, finishedAt } = due;
  const ports = count === 1 ? 'a newly open port' : `${formatCount(count)} newly open ports`;
  const rest = count - Math.min(listedMax, due.opened.length);
  return writeAlertMail(due, {
    subject: count === 1 ? `New open port on ${server}` : `${formatCount(count)} new open ports on ${server}`,
    paragraphs: [
      `A scan of ${server} (${address}) that ended at ${formatTime(finishedAt.getTime(), 'seconds')} found ${ports}:`,
      [
        ...due.opened.slice(0, listedMax).map(lineOf),
        ...(rest > 0 ? [`and ${formatCount(rest)} more`] : []),
      ].join('\n'),
      'If you did not open them, check the server. All ports are on this page:',
      linkTo(`/client/servers/${due.serverId}/protect#ports`),
    ],
  });
}

function lineOf({ transport, port, service, product }: DuePortMail['opened'][number]): string {
  const name = oneLine(product ?? service ?? '');
  return name === '' ? `${transport}/${port}` : `${transport}/${port}: ${name}`;
}
