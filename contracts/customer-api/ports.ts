/** Bodies about open ports and the scans that find them. */
import { type Static, Type } from 'typebox';
import { transports } from '#contracts/ip-protocols.ts';
import { portStates, scanKinds, scanMethods, scanProfiles, scanStates } from '#contracts/port-scan/index.ts';
import { Nullable } from '../scalars.ts';
import type { EndpointDeclaration } from './endpoint.ts';
import { Id, OneOf, SelectionRequest, Titled } from './schema-kit.ts';

const time = (description: string, example: string) =>
  Type.String({ format: 'date-time', description, examples: [example] });
const text = (description: string, example: string) =>
  Nullable(Type.String({ description, examples: [example] }));

export const Port = Titled('Port', {
  address: Type.String({ description: 'Address of the server.', examples: ['203.0.113.10'] }),
  transport: OneOf(transports),
  port: Type.Integer({ minimum: 1, maximum: 65_535, examples: [22] }),
  state: OneOf(portStates, '`closed`: a later scan asked for the port and did not find it open.'),
  service: text('Protocol. Null: unknown.', 'ssh'),
  product: text('Null: hidden or not recognized.', 'OpenSSH'),
  version: text('Null: hidden or not recognized.', '9.6p1'),
  method: OneOf(
    scanMethods,
    '`probed`: the service answered a probe. `table`: `service` is guessed from the port number.',
  ),
  confidence: Type.Integer({
    minimum: 0,
    maximum: 10,
    description: 'Certainty of `service`, 10 at most.',
    examples: [10],
  }),
  first_observed_at: time(
    'Begin of the present time of being open, or of the last one.',
    '2026-11-21T08:00:00.000Z',
  ),
  observed_at: time('Newest observation of the open port.', '2026-11-22T10:02:11.000Z'),
  identified_at: Nullable(
    time(
      'When the service answered a probe with its product and version; newer scans may have seen only the open port. Null: it never did.',
      '2026-11-22T10:02:11.000Z',
    ),
  ),
  closed_at: Nullable(
    time('End of the scan that found it closed; null while it is open.', '2026-11-22T11:00:00.000Z'),
  ),
  profile: OneOf(scanProfiles, 'The scan that observed it.'),
  freshness: OneOf(['fresh', 'stale'], '`stale`: older than 2 hours, of a full scan older than 27 hours.'),
});
export type Port = Static<typeof Port>;

export const PortScan = Titled('PortScan', {
  id: Type.String({ format: 'uuid', examples: ['0b0e8c1a-5d7f-4c57-9a3e-2f1d6b8c4e90'] }),
  server_id: Id,
  address: Type.String({ description: 'The address that is scanned.', examples: ['203.0.113.10'] }),
  kind: OneOf(
    scanKinds,
    '`manual`: requested by the customer. `automatic`: for a new address. `routine`: hourly or daily.',
  ),
  profile: OneOf(scanProfiles, '`common`: the 100 most used TCP and UDP ports. `full`: all ports.'),
  state: OneOf(
    scanStates,
    '`partial`: interrupted; what was found counts. `expired`: not started within 24 hours. `cancelled`: the protection views were switched off, or the address was released.',
  ),
  overdue: Type.Boolean({
    description: 'True: running, without contact to the sensor for over five minutes.',
    examples: [false],
  }),
  progress: Nullable(Type.Number({ minimum: 0, maximum: 100, description: 'Percent. Null: unknown.' })),
  requested_at: Nullable(time('Null of routine scans.', '2026-11-22T10:00:00.000Z')),
  expires_at: Nullable(time('End of the start window. Null of routine scans.', '2026-11-23T10:00:00.000Z')),
  started_at: Nullable(time('Start at the sensor.', '2026-11-22T10:00:20.000Z')),
  finished_at: Nullable(time('End of the scan or of the request.', '2026-11-22T10:12:00.000Z')),
});
export type PortScan = Static<typeof PortScan>;

export const PortList = Titled('PortList', {
  ports: Type.Array(Port, { description: 'Open ports.' }),
  closed: Type.Array(Port, { description: 'Ports that closed within seven days.' }),
  scans: Type.Array(PortScan, {
    description: 'Requests and scans of the last seven days, pending ones first, then newest first.',
  }),
  last_full_scan_at: Nullable(
    time(
      'Every address has a complete full scan at or after this time; null while one has none.',
      '2026-11-22T03:20:00.000Z',
    ),
  ),
});

export const PortScanList = Titled('PortScanList', {
  scans: Type.Array(PortScan, { description: 'One for each public address of the server.' }),
});

/** Open ports of servers, and scans. */
export const portEndpoints = [
  {
    id: 'listServerPorts',
    call: 'GET /servers/{id}/ports',
    summary: 'List open ports of a server',
    description:
      'Ports of the public addresses of the server that answered a scan, and the scans of the last seven days. The 100 most used ports are scanned every hour, all ports every day. While the protection views of the server are off, the answer is a `404` (`protect_disabled`).',
    params: { id: 'server' },
    responses: { 200: { description: 'Ports and scans.', schema: PortList, headers: ['ETag'] } },
    errors: ['protect_disabled'],
  },
  {
    id: 'scanServerPorts',
    call: 'POST /servers/{id}/port-scans',
    isIdempotent: true,
    summary: 'Request a port scan',
    description:
      'Queues a full scan of every public address of a running server. While scans of the server are pending, the answer is these (200) and nothing is queued. At most every 10 minutes for a server, 32 addresses at once, and 100 pending addresses for an account. A scan that was not started within 24 hours expires.',
    params: { id: 'server' },
    body: SelectionRequest,
    responses: {
      200: { description: 'The scans that are pending already.', schema: PortScanList },
      202: { description: 'The scans, queued.', schema: PortScanList },
    },
    errors: ['protect_disabled', 'server_not_ready', 'limit_exceeded', 'scan_cooldown'],
  },
] as const satisfies readonly EndpointDeclaration[];
