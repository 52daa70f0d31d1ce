import { bodyErrors, type Endpoint } from './endpoint.ts';
import { PortList, PortScanList } from './port-schemas.ts';
import { SelectionRequest } from './schema-kit.ts';

/** Open ports of servers, and scans. */
export const portEndpoints = [
  {
    id: 'listServerPorts',
    method: 'GET',
    path: '/servers/{id}/ports',
    versions: ['v2'],
    summary: 'List open ports of a server',
    description:
      'Ports of the public addresses of the server that answered a scan, and the scans of the last seven days. The 100 most used ports are scanned every hour, all ports every day. While the protection views of the server are off, the answer is a `404` (`protect_disabled`).',
    params: { id: 'server' },
    selectsTenant: true,
    responses: { 200: { description: 'Ports and scans.', schema: PortList, headers: ['ETag'] } },
    errors: ['not_found', 'protect_disabled'],
  },
  {
    id: 'scanServerPorts',
    method: 'POST',
    isIdempotent: true,
    path: '/servers/{id}/port-scans',
    versions: ['v2'],
    summary: 'Request a port scan',
    description:
      'Queues a full scan of every public address of a running server. While scans of the server are pending, the answer is these (200) and nothing is queued. At most every 10 minutes for a server, 32 addresses at once, and 100 pending addresses for an account. A scan that was not started within 24 hours expires.',
    params: { id: 'server' },
    body: SelectionRequest,
    isBodyOptional: true,
    selectsTenant: true,
    responses: {
      200: { description: 'The scans that are pending already.', schema: PortScanList },
      202: { description: 'The scans, queued.', schema: PortScanList },
    },
    errors: [
      'not_found',
      'protect_disabled',
      'read_only_key',
      'server_not_ready',
      'limit_exceeded',
      'scan_cooldown',
      ...bodyErrors,
    ],
  },
] as const satisfies readonly Endpoint[];
