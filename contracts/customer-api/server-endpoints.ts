import { bodyErrors, both, type Endpoint } from './endpoint.ts';
import { SelectionRequest } from './schema-kit.ts';
import {
  ActionRequest,
  CreatedServer,
  CreateServerRequest,
  ListActionsQuery,
  ListServersQuery,
  ReadServerQuery,
  Server,
  ServerAction,
  ServerActionList,
  ServerForecast,
  ServerList,
  UpdateServerRequest,
} from './server-schemas.ts';

const onServer = { id: 'server' } as const;
/** Reasons of a call that may carry an `Idempotency-Key`. */
const idempotencyErrors = ['invalid_header', 'idempotency_key_reused', 'idempotency_in_progress'];

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
      'Orders one hourly-billed server and starts provisioning at once. Every call is a new order, unless an `Idempotency-Key` says that it is the same one. The answer is the only one that carries `root_password`. Read the server with `wait_for=status:running` until it runs.',
    params: {},
    body: CreateServerRequest,
    headers: ['Idempotency-Key'],
    selectsTenant: true,
    responses: {
      200: { description: 'What would happen, with `dry_run`.', schema: ServerForecast },
      201: {
        description: 'The server, queued.',
        schema: CreatedServer,
        headers: ['Location', 'Idempotent-Replayed'],
      },
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
      ...idempotencyErrors,
      'not_found',
    ],
  },
  {
    id: 'readServer',
    method: 'GET',
    path: '/servers/{id}',
    versions: both,
    summary: 'Read a server',
    description:
      'One server of the workspace. With `wait_for` the answer comes when the server has got there, so that one call takes the place of many.',
    params: onServer,
    query: ReadServerQuery,
    headers: ['Prefer'],
    selectsTenant: true,
    responses: {
      200: { description: 'The server.', schema: Server, headers: ['ETag', 'Preference-Applied'] },
    },
    errors: ['not_found', 'invalid_fields'],
  },
  {
    id: 'updateServer',
    method: 'PATCH',
    path: '/servers/{id}',
    versions: both,
    summary: 'Rename or label a server',
    description:
      'Changes what is given and leaves the rest. Labels are merged; null takes one away. The guest itself is not touched.',
    params: onServer,
    body: UpdateServerRequest,
    selectsTenant: true,
    responses: { 200: { description: 'The server.', schema: Server } },
    errors: [...bodyErrors, 'not_found', 'read_only_key'],
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
    description: 'What was asked of the server, newest first.',
    params: onServer,
    query: ListActionsQuery,
    selectsTenant: true,
    responses: {
      200: { description: 'A page of actions.', schema: ServerActionList, headers: ['ETag', 'Link'] },
    },
    errors: ['invalid_cursor', 'not_found'],
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
    headers: ['Idempotency-Key', 'Prefer'],
    selectsTenant: true,
    responses: {
      200: {
        description: 'It has finished, or it was so already.',
        schema: ServerAction,
        headers: ['Idempotent-Replayed', 'Preference-Applied'],
      },
      202: {
        description: 'The action, queued or running.',
        schema: ServerAction,
        headers: ['Idempotent-Replayed', 'Preference-Applied'],
      },
    },
    errors: [
      ...bodyErrors,
      'unsupported_action',
      'not_found',
      'read_only_key',
      'server_busy',
      'server_not_ready',
      ...idempotencyErrors,
    ],
  },
  {
    id: 'readAction',
    method: 'GET',
    path: '/actions/{id}',
    versions: both,
    summary: 'Read an action',
    description:
      'One action, also of a server that is gone by now. With `Prefer: wait=N` the answer comes when it has finished.',
    params: { id: 'action' },
    headers: ['Prefer'],
    selectsTenant: true,
    responses: {
      200: { description: 'The action.', schema: ServerAction, headers: ['ETag', 'Preference-Applied'] },
    },
    errors: ['not_found'],
  },
] as const satisfies readonly Endpoint[];
