import { bodyErrors, both, type Endpoint, ok } from './endpoint.ts';
import { SelectionRequest } from './schema-kit.ts';
import {
  ActionRequest,
  CreatedServer,
  CreateServerRequest,
  ListServersQuery,
  Server,
  ServerAction,
  ServerActionList,
  ServerList,
} from './server-schemas.ts';

const onServer = { id: 'server' } as const;

/** Servers and their actions. */
export const serverEndpoints = [
  {
    id: 'listServers',
    method: 'GET',
    path: '/servers',
    versions: both,
    summary: 'List servers',
    description: 'The servers of the workspace, newest first unless `sort` says otherwise.',
    params: {},
    query: ListServersQuery,
    selectsTenant: true,
    responses: {
      200: { description: 'A page of servers.', schema: ServerList, headers: ['ETag', 'Link'] },
    },
    errors: ['invalid_cursor', 'invalid_fields'],
  },
  {
    id: 'createServer',
    method: 'POST',
    path: '/servers',
    versions: both,
    summary: 'Deploy a server',
    description:
      'Orders one hourly-billed server and starts provisioning at once. Every call is a new order. The answer is the only one that carries `root_password`. Poll the server until its `status` is `running`.',
    params: {},
    body: CreateServerRequest,
    selectsTenant: true,
    responses: {
      201: { description: 'The server, queued.', schema: CreatedServer, headers: ['Location'] },
    },
    errors: [
      ...bodyErrors,
      'billing_cycle_not_supported',
      'not_found',
      'ip_in_use',
      'limit_exceeded',
      'credit_required',
      'charge_declined',
      'charge_unconfirmed',
      'read_only_key',
      'deploy_rate',
      'capacity_unavailable',
    ],
  },
  {
    id: 'readServer',
    method: 'GET',
    path: '/servers/{id}',
    versions: both,
    summary: 'Read a server',
    description: 'One server of the workspace.',
    params: onServer,
    selectsTenant: true,
    responses: ok(Server, 'The server.'),
    errors: ['not_found'],
  },
  {
    id: 'destroyServer',
    method: 'DELETE',
    path: '/servers/{id}',
    versions: both,
    summary: 'Destroy a server',
    description:
      'Removes the guest and its disk and gives its addresses back. Asked again while it runs, it answers with the same action; afterwards the server is not found.',
    params: onServer,
    body: SelectionRequest,
    isBodyOptional: true,
    selectsTenant: true,
    responses: { 202: { description: 'The action that destroys it.', schema: ServerAction } },
    errors: [...bodyErrors, 'not_found', 'read_only_key', 'provisioning_failed', 'server_busy'],
  },
  {
    id: 'listServerActions',
    method: 'GET',
    path: '/servers/{id}/actions',
    versions: both,
    summary: 'List actions of a server',
    description: 'The newest 50 actions of the server, newest first.',
    params: onServer,
    selectsTenant: true,
    responses: ok(ServerActionList, 'The actions.'),
    errors: ['not_found'],
  },
  {
    id: 'actOnServer',
    method: 'POST',
    path: '/servers/{id}/actions',
    versions: both,
    summary: 'Start, stop or restart a server',
    description:
      '`shutdown` is the ACPI halt, `stop` switches the power off. A server that is in the wanted state already is left alone: 200 with `changed: false`.',
    params: onServer,
    body: ActionRequest,
    selectsTenant: true,
    responses: {
      200: { description: 'It was so already.', schema: ServerAction },
      202: { description: 'The action, queued.', schema: ServerAction },
    },
    errors: [
      ...bodyErrors,
      'unsupported_action',
      'not_found',
      'read_only_key',
      'server_busy',
      'server_not_ready',
    ],
  },
] as const satisfies readonly Endpoint[];
