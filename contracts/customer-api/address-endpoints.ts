import {
  Address,
  AddressList,
  AttachAddressRequest,
  ReserveAddressRequest,
  UpdateAddressRequest,
} from './address-schemas.ts';
import { bodyErrors, conditionErrors, type Endpoint, idempotencyErrors, ok } from './endpoint.ts';
import { SelectionRequest, ShortListQuery } from './schema-kit.ts';
import { ServerAction } from './server-schemas.ts';

const onAddress = { id: 'address' } as const;
const moveErrors = [
  ...bodyErrors,
  ...conditionErrors,
  ...idempotencyErrors,
  'not_found',
  'read_only_key',
  'server_busy',
  'server_not_ready',
  'unsupported_action',
];

/** Addresses that an account keeps, with or without a server. */
export const addressEndpoints = [
  {
    id: 'listAddresses',
    method: 'GET',
    path: '/addresses',
    versions: ['v2'],
    summary: 'List kept addresses',
    description:
      'The addresses that the workspace keeps, oldest first, and the number of further ones it may have. Other addresses of servers are in `public_ips` of each server.',
    params: {},
    query: ShortListQuery,
    selectsTenant: true,
    responses: { 200: { description: 'The addresses.', schema: AddressList, headers: ['ETag', 'Link'] } },
    errors: ['invalid_cursor', 'invalid_fields'],
  },
  {
    id: 'reserveAddress',
    method: 'POST',
    path: '/addresses',
    versions: ['v2'],
    summary: 'Keep an address',
    description:
      'Reserves a free address of a location, or with `address` keeps one that a server has. A kept address outlives its servers and costs nothing; it is yours until you release it. Traffic, attacks, ports and findings stay with the server that had the address at that time.',
    params: {},
    body: ReserveAddressRequest,
    isBodyOptional: true,
    headers: ['Idempotency-Key'],
    selectsTenant: true,
    responses: {
      201: {
        description: 'The address.',
        schema: Address,
        headers: ['ETag', 'Location', 'Idempotent-Replayed'],
      },
    },
    errors: [
      ...bodyErrors,
      ...idempotencyErrors,
      'address_kept',
      'limit_exceeded',
      'capacity_unavailable',
      'read_only_key',
      // Of a repetition, when the address was released meanwhile.
      'not_found',
    ],
  },
  {
    id: 'readAddress',
    method: 'GET',
    path: '/addresses/{id}',
    versions: ['v2'],
    summary: 'Read a kept address',
    description: 'One kept address of the workspace.',
    params: onAddress,
    selectsTenant: true,
    responses: ok(Address, 'The address.'),
    errors: ['not_found'],
  },
  {
    id: 'updateAddress',
    method: 'PATCH',
    path: '/addresses/{id}',
    versions: ['v2'],
    summary: 'Rename a kept address',
    description: 'Changes the name.',
    params: onAddress,
    body: UpdateAddressRequest,
    headers: ['If-Match'],
    selectsTenant: true,
    responses: ok(Address, 'The address.'),
    errors: [...bodyErrors, ...conditionErrors, 'not_found', 'read_only_key'],
  },
  {
    id: 'releaseAddress',
    method: 'DELETE',
    path: '/addresses/{id}',
    versions: ['v2'],
    summary: 'Release a kept address',
    description:
      'Gives the address back; another customer may get it later. An address that its server was deployed with stays with the server, and goes when the server is destroyed. Detach any other before.',
    params: onAddress,
    body: SelectionRequest,
    isBodyOptional: true,
    headers: ['If-Match'],
    selectsTenant: true,
    responses: { 204: { description: 'Released.' } },
    errors: [...bodyErrors, ...conditionErrors, 'address_attached', 'not_found', 'read_only_key'],
  },
  {
    id: 'attachAddress',
    method: 'POST',
    path: '/addresses/{id}/attach',
    versions: ['v2'],
    summary: 'Attach a kept address to a server',
    description:
      'The server may send from the address and receives what is sent to it once the action has succeeded; its firewall applies to it as well. The operating system isn’t changed: add the address to its network interface, or rebuild the server, which sets up all its addresses.',
    params: onAddress,
    body: AttachAddressRequest,
    headers: ['Idempotency-Key', 'If-Match'],
    selectsTenant: true,
    responses: {
      202: { description: 'The action, queued.', schema: ServerAction, headers: ['Idempotent-Replayed'] },
    },
    errors: [...moveErrors, 'address_attached'],
  },
  {
    id: 'detachAddress',
    method: 'POST',
    path: '/addresses/{id}/detach',
    versions: ['v2'],
    summary: 'Detach a kept address',
    description:
      'Takes the address from its server, which can’t send from it any more once the action has succeeded. You keep the address. The primary address of a server stays with it.',
    params: onAddress,
    body: SelectionRequest,
    isBodyOptional: true,
    headers: ['Idempotency-Key', 'If-Match'],
    selectsTenant: true,
    responses: {
      202: { description: 'The action, queued.', schema: ServerAction, headers: ['Idempotent-Replayed'] },
    },
    errors: [...moveErrors, 'address_available', 'primary_address'],
  },
] as const satisfies readonly Endpoint[];
