/**
 * What webhooks tell: types and bodies of events, as receivers see them.
 *
 * Bodies are thin: what happened, to which thing, and where to read it. A receiver that missed one, or got it late,
 * reads the present state from `href`; nothing in a body needs to be kept secret or believed for long.
 */
import { type TSchema, Type } from 'typebox';
import { findingSeverities } from '../findings.ts';
import { transports } from '../ip-protocols.ts';
import { Nullable } from '../scalars.ts';
import { Id, Moment, OneOf, Titled } from './schema-kit.ts';

const Href = Type.String({ description: 'API path of the resource.' });
const aboutServer = Titled('ServerEventData', { server_id: Id, tenant_id: Id, href: Href });
const aboutAttack = Titled('AttackEventData', {
  incident_id: Type.String({ format: 'uuid', description: 'The same at the start and at the end.' }),
  server_id: Id,
  tenant_id: Id,
  href: Href,
});
const aboutPort = Titled('PortEventData', {
  scan_id: Type.String({ format: 'uuid', description: 'The scan that found it.' }),
  server_id: Id,
  tenant_id: Id,
  address: Type.String({ description: 'Address of the server.' }),
  transport: OneOf(transports),
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  href: Href,
});
const aboutScan = Titled('ScanEventData', {
  scan_id: Type.String({ format: 'uuid' }),
  server_id: Id,
  tenant_id: Id,
  address: Type.String({ description: 'The scanned address.' }),
  href: Href,
});
const aboutFinding = Titled('FindingEventData', {
  server_id: Id,
  tenant_id: Id,
  address: Type.String({ description: 'Address of the server.' }),
  transport: OneOf(transports),
  port: Type.Integer({ minimum: 1, maximum: 65_535 }),
  cve_id: Type.String(),
  fingerprint: Type.String({ description: 'The version for which it was found.' }),
  severity: Nullable(OneOf(findingSeverities, 'Null: the record is not rated yet.')),
  href: Href,
});
const aboutNetwork = Titled('NetworkEventData', { network_id: Id, tenant_id: Id, href: Href });
const aboutAddress = Titled('AddressEventData', {
  address_id: Id,
  address: Type.String(),
  server_id: Nullable(Type.Integer({ minimum: 1, description: 'The server that got or lost it.' })),
  tenant_id: Id,
  href: Href,
});
const aboutSnapshot = Titled('SnapshotEventData', {
  snapshot_id: Id,
  server_id: Id,
  tenant_id: Id,
  href: Href,
});
const aboutAction = Titled('ActionEventData', { action_id: Id, server_id: Id, tenant_id: Id, href: Href });
const aboutUsage = Titled('UsageEventData', {
  tenant_id: Id,
  period: Type.String({ pattern: '^\\d{4}-\\d{2}$', description: 'The UTC month.' }),
  percent: Type.Integer({ description: 'Percent of the free requests of the month: 50, 80 or 100.' }),
  href: Href,
});
const aboutPool = Titled('BandwidthEventData', {
  tenant_id: Id,
  period: Type.String({ pattern: '^\\d{4}-\\d{2}$', description: 'The UTC month.' }),
  percent: Type.Integer({
    description: 'Percent of the bandwidth pool as it was at that time: 50, 80 or 100.',
  }),
  href: Href,
});
const aboutKey = Titled('KeyEventData', { key_id: Type.String(), organization_id: Id, href: Href });
const aboutAccount = Titled('AccountEventData', {
  tenant_id: Id,
  reason: OneOf(['account_suspended', 'account_closed']),
  href: Href,
});
const aboutTest = Titled('TestEventData', { endpoint_id: Id, href: Nullable(Href) });

interface EventKind {
  type: string;
  /** One sentence: when it is sent. */
  summary: string;
  data: TSchema;
}

/** Every event that an endpoint can choose, in the order in which they are offered. */
export const webhookEvents = [
  { type: 'server.created', summary: 'A server was ordered; provisioning begins.', data: aboutServer },
  { type: 'server.provisioned', summary: 'A server is ready and addressable.', data: aboutServer },
  {
    type: 'server.provisioning_failed',
    summary: 'Provisioning failed; support will resolve it.',
    data: aboutServer,
  },
  { type: 'server.power_changed', summary: 'A server was started or stopped.', data: aboutServer },
  {
    type: 'server.rebuilt',
    summary: 'A server has a new disk, made from an image.',
    data: aboutServer,
  },
  {
    type: 'server.resized',
    summary: 'A server has another plan and its price.',
    data: aboutServer,
  },
  { type: 'server.rescued', summary: 'A server runs from a rescue image.', data: aboutServer },
  { type: 'server.unrescued', summary: 'A server runs from its own disk again.', data: aboutServer },
  { type: 'server.iso_attached', summary: 'A server has an ISO in its CD drive.', data: aboutServer },
  { type: 'server.iso_detached', summary: 'The CD drive of a server is empty.', data: aboutServer },
  { type: 'snapshot.created', summary: 'A snapshot of a server is complete.', data: aboutSnapshot },
  {
    type: 'snapshot.restored',
    summary: 'A server has the disk of a snapshot.',
    data: aboutSnapshot,
  },
  {
    type: 'snapshot.deleted',
    summary: 'A snapshot was deleted, by itself or with its server.',
    data: aboutSnapshot,
  },
  {
    type: 'server.destroyed',
    summary: 'A server was destroyed, its addresses are released.',
    data: aboutServer,
  },
  {
    type: 'server.reverse_dns_applied',
    summary: 'The DNS server has the newest reverse name of an address of a server.',
    data: aboutServer,
  },
  { type: 'address.reserved', summary: 'An address is kept for the account.', data: aboutAddress },
  { type: 'address.attached', summary: 'A server has got a kept address.', data: aboutAddress },
  {
    type: 'address.detached',
    summary: 'A kept address was taken from its server, or its server was destroyed.',
    data: aboutAddress,
  },
  { type: 'address.released', summary: 'A kept address was given back.', data: aboutAddress },
  {
    type: 'firewall.applied',
    summary: 'The hypervisor has the newest version of the firewall of a server.',
    data: aboutServer,
  },
  {
    type: 'server.attack_started',
    summary: 'An attack on a server, or from it, was detected.',
    data: aboutAttack,
  },
  {
    type: 'server.attack_ended',
    summary: 'The attack has ended. Sent only after its start.',
    data: aboutAttack,
  },
  {
    type: 'server.filter_started',
    summary:
      'Traffic of an attack on a server, or by one, is dropped at its hypervisor from now on. Sent only after the start of the attack.',
    data: aboutAttack,
  },
  {
    type: 'server.filter_ended',
    summary: 'It is dropped no longer; the attack may go on.',
    data: aboutAttack,
  },
  {
    type: 'server.port_opened',
    summary:
      'A scan found a port open that was not open before; at most 50 for one scan. Off until switched on in the settings of the Protect page.',
    data: aboutPort,
  },
  {
    type: 'server.port_closed',
    summary:
      'A scan found a port closed that was open before; at most 50 for one scan. Off until switched on in the settings of the Protect page.',
    data: aboutPort,
  },
  {
    type: 'server.scan_completed',
    summary: 'The result of a requested port scan of one address has arrived, complete or partial.',
    data: aboutScan,
  },
  {
    type: 'server.finding_new',
    summary:
      'A potential vulnerability was found for the first time for this server, port and version; at most 50 for one check, the most severe. Off until switched on in the settings of the Protect page.',
    data: aboutFinding,
  },
  {
    type: 'network.synced',
    summary: 'All hypervisors have the present state of the network.',
    data: aboutNetwork,
  },
  {
    type: 'network.sync_failed',
    summary: 'The network could not be applied to the hypervisors.',
    data: aboutNetwork,
  },
  { type: 'action.finished', summary: 'An action of a server finished or failed.', data: aboutAction },
  {
    type: 'usage.threshold',
    summary: 'The account has used half, 80 % or all of its free requests of the month.',
    data: aboutUsage,
  },
  {
    type: 'bandwidth.threshold',
    summary:
      'The account has used half, 80 % or all of its bandwidth pool of the month, and more costs something.',
    data: aboutPool,
  },
  {
    type: 'bandwidth.limited',
    summary:
      'The bandwidth pool of the month is used up and the servers of the account are limited in speed until the month ends, as the account chose.',
    data: aboutPool,
  },
  { type: 'key.created', summary: 'An API key was created.', data: aboutKey },
  { type: 'key.revoked', summary: 'An API key was revoked.', data: aboutKey },
  { type: 'account.locked', summary: 'The account was suspended or closed.', data: aboutAccount },
] as const satisfies readonly EventKind[];

/** Sent by the test button alone; every endpoint gets it. */
export const testEvent = {
  type: 'webhook.test',
  summary: 'A test event, sent with the test button of the endpoint.',
  data: aboutTest,
} as const satisfies EventKind;

export type WebhookEventType = (typeof webhookEvents)[number]['type'];

/** The whole body of a delivery. */
export function eventBodySchema(kind: { type: string; data: TSchema }): TSchema {
  return Type.Object({
    type: OneOf([kind.type]),
    timestamp: Type.Unsafe<string>({ ...Moment, description: 'Time of the event, not of the delivery.' }),
    data: kind.data,
  });
}
