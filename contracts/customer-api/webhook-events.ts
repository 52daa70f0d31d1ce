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

/** Types, what their bodies hold, and one sentence each: when it is sent. In the order in which endpoints are offered them. */
const offered = [
  ['server.created', aboutServer, 'A server was ordered; provisioning begins.'],
  ['server.provisioned', aboutServer, 'A server is ready and addressable.'],
  ['server.provisioning_failed', aboutServer, 'Provisioning failed; support will resolve it.'],
  ['server.power_changed', aboutServer, 'A server was started or stopped.'],
  ['server.rebuilt', aboutServer, 'A server has a new disk, made from an image.'],
  ['server.resized', aboutServer, 'A server has another plan and its price.'],
  ['server.rescued', aboutServer, 'A server runs from a rescue image.'],
  ['server.unrescued', aboutServer, 'A server runs from its own disk again.'],
  ['server.iso_attached', aboutServer, 'A server has an ISO in its CD drive.'],
  ['server.iso_detached', aboutServer, 'The CD drive of a server is empty.'],
  ['snapshot.created', aboutSnapshot, 'A snapshot of a server is complete.'],
  ['snapshot.restored', aboutSnapshot, 'A server has the disk of a snapshot.'],
  ['snapshot.deleted', aboutSnapshot, 'A snapshot was deleted, by itself or with its server.'],
  ['server.destroyed', aboutServer, 'A server was destroyed, its addresses are released.'],
  [
    'server.reverse_dns_applied',
    aboutServer,
    'The DNS server has the newest reverse name of an address of a server.',
  ],
  ['address.reserved', aboutAddress, 'An address is kept for the account.'],
  ['address.attached', aboutAddress, 'A server has got a kept address.'],
  [
    'address.detached',
    aboutAddress,
    'A kept address was taken from its server, or its server was destroyed.',
  ],
  ['address.released', aboutAddress, 'A kept address was given back.'],
  ['firewall.applied', aboutServer, 'The hypervisor has the newest version of the firewall of a server.'],
  ['server.attack_started', aboutAttack, 'An attack on a server, or from it, was detected.'],
  ['server.attack_ended', aboutAttack, 'The attack has ended. Sent only after its start.'],
  [
    'server.filter_started',
    aboutAttack,
    'Traffic of an attack on a server, or by one, is dropped at its hypervisor from now on. Sent only after the start of the attack.',
  ],
  ['server.filter_ended', aboutAttack, 'It is dropped no longer; the attack may go on.'],
  [
    'server.port_opened',
    aboutPort,
    'A scan found a port open that was not open before; at most 50 for one scan. Off until switched on in the settings of the Protect page.',
  ],
  [
    'server.port_closed',
    aboutPort,
    'A scan found a port closed that was open before; at most 50 for one scan. Off until switched on in the settings of the Protect page.',
  ],
  [
    'server.scan_completed',
    aboutScan,
    'The result of a requested port scan of one address has arrived, complete or partial.',
  ],
  [
    'server.finding_new',
    aboutFinding,
    'A potential vulnerability was found for the first time for this server, port and version; at most 50 for one check, the most severe. Off until switched on in the settings of the Protect page.',
  ],
  ['network.synced', aboutNetwork, 'All hypervisors have the present state of the network.'],
  ['network.sync_failed', aboutNetwork, 'The network could not be applied to the hypervisors.'],
  ['action.finished', aboutAction, 'An action of a server finished or failed.'],
  [
    'usage.threshold',
    aboutUsage,
    'The account has used half, 80 % or all of its free requests of the month.',
  ],
  [
    'bandwidth.threshold',
    aboutPool,
    'The account has used half, 80 % or all of its bandwidth pool of the month, and more costs something.',
  ],
  [
    'bandwidth.limited',
    aboutPool,
    'The bandwidth pool of the month is used up and the servers of the account are limited in speed until the month ends, as the account chose.',
  ],
  ['key.created', aboutKey, 'An API key was created.'],
  ['key.revoked', aboutKey, 'An API key was revoked.'],
  ['account.locked', aboutAccount, 'The account was suspended or closed.'],
] as const satisfies readonly [string, TSchema, string][];

export type WebhookEventType = (typeof offered)[number][0];

/** Every event that an endpoint can choose. */
export const webhookEvents = offered.map(([type, data, summary]) => ({ type, data, summary }));

/** Sent by the test button alone; every endpoint gets it. */
export const testEvent = {
  type: 'webhook.test',
  summary: 'A test event, sent with the test button of the endpoint.',
  data: aboutTest,
} as const;

/** The whole body of a delivery. */
export function eventBodySchema(kind: { type: string; data: TSchema }): TSchema {
  return Type.Object({
    type: OneOf([kind.type]),
    timestamp: Type.Unsafe<string>({ ...Moment, description: 'Time of the event, not of the delivery.' }),
    data: kind.data,
  });
}
