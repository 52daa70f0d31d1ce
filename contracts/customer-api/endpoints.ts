/**
 * Every endpoint of the customer API. The server registers its routes from this list and the OpenAPI document is made
 * of it, so what is documented, validated and served can't differ.
 */
import type { TSchema } from 'typebox';
import { Type } from 'typebox';
import {
  ActionRequest,
  CreatedServer,
  CreateServerRequest,
  ListServersQuery,
  SelectionRequest,
  Server,
  ServerAction,
  ServerActionList,
  ServerList,
  TenantList,
} from './schemas.ts';

export interface Endpoint {
  /** Also the operation's id in the document, with the version before it. */
  id: string;
  method: 'GET' | 'POST' | 'DELETE';
  /** Below `/api/v1` and `/api/v2`. */
  path: string;
  versions: readonly ('v1' | 'v2')[];
  summary: string;
  description: string;
  /** Kind of resource that each path parameter names: whose it is, is checked. */
  params: Readonly<Record<string, 'server'>>;
  query?: TSchema;
  body?: TSchema;
  /** A body may be left out. */
  isBodyOptional?: boolean;
  /** False for what is not about one workspace. */
  selectsTenant: boolean;
  responses: Readonly<Record<number, { description: string; schema: TSchema; headers?: readonly string[] }>>;
  /** Reasons (or codes without one) beyond those of every call. */
  errors: readonly string[];
}

/** Errors that any authenticated call may meet. */
export const commonErrors = [
  'unauthorized',
  'hourly_not_eligible',
  'no_billing_profile',
  'account_suspended',
  'account_closed',
  'key_rate',
  'auth_rate',
  'internal_error',
  'unavailable',
] as const;

const both = ['v1', 'v2'] as const;
const onServer = { id: 'server' } as const;
const bodyErrors = ['invalid_json', 'payload_too_large', 'unsupported_media_type', 'invalid_fields'];
const ok = (schema: TSchema, description: string) => ({ 200: { description, schema, headers: ['ETag'] } });

export const endpoints = [
  {
    id: 'listTenants',
    method: 'GET',
    path: '/tenants',
    versions: ['v2'],
    summary: 'List workspaces',
    description:
      'The workspaces that the key may act on, the default one first. `api_access` says whether a call on one would pass its account gate, and why not.',
    params: {},
    selectsTenant: false,
    responses: ok(TenantList, 'The workspaces.'),
    errors: [],
  },
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
      'credit_required',
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

export type EndpointId = (typeof endpoints)[number]['id'];

/** Path ids are checked by hand, so that what can't be an id is the 404 of one that doesn't exist. */
export const PathId = Type.Integer({ minimum: 1, description: 'An id from a list or an earlier answer.' });
