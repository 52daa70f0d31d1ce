/** Bodies about addresses that an account keeps. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { created, type EndpointDeclaration, ok, page, queued } from './endpoint.ts';
import {
  Id,
  Moment,
  Name,
  OneOf,
  Pagination,
  RequestBody,
  SelectionRequest,
  ShortListQuery,
  SlugOrId,
  Titled,
} from './schema-kit.ts';
import { ServerAction } from './server-schemas.ts';

export const addressStates = ['available', 'attaching', 'attached', 'detaching'] as const;

export const Address = Titled('Address', {
  id: Id,
  tenant_id: Id,
  name: Type.String(),
  address: Type.String(),
  family: Type.Integer({ enum: [4, 6] }),
  prefix_length: Type.Integer(),
  gateway: Type.String(),
  location: Type.Object({ id: Id, slug: Type.String() }),
  state: OneOf(
    addressStates,
    '`available`: no server has it. While it is `detaching`, its server may still send from it.',
  ),
  server_id: Nullable(Type.Integer({ minimum: 1, description: 'The server that has it.' })),
  primary: Type.Boolean({
    description: 'True for the first address of a server, which stays with it until the server is destroyed.',
  }),
  created_at: Moment,
  updated_at: Moment,
});
export type Address = Static<typeof Address>;

export const AddressList = Titled('AddressList', {
  addresses: Type.Array(Address),
  limits: Type.Object({
    max: Type.Integer({ description: 'Maximum number of kept addresses of the account.' }),
    used: Type.Integer(),
  }),
  pagination: Pagination,
});

export const ReserveAddressRequest = RequestBody('ReserveAddressRequest', {
  name: Type.Optional(Name),
  location: Type.Optional(SlugOrId('Where servers can have it; required if there are several locations')),
  family: Type.Optional(Type.Integer({ enum: [4, 6], default: 4 })),
  address: Type.Optional(
    Type.String({
      maxLength: 45,
      description:
        'An address that a server of the workspace has, to keep it when the server is destroyed. Without `location` and `family`.',
    }),
  ),
});
export type ReserveAddressRequest = Static<typeof ReserveAddressRequest>;

export const UpdateAddressRequest = RequestBody('UpdateAddressRequest', { name: Name });
export type UpdateAddressRequest = Static<typeof UpdateAddressRequest>;

export const AttachAddressRequest = RequestBody('AttachAddressRequest', {
  server_id: Type.Integer({
    minimum: 1,
    'x-resource': 'server',
    description: 'A server of the workspace, at the location of the address, with a public address.',
  }),
});
export type AttachAddressRequest = Static<typeof AttachAddressRequest>;

export const ReverseDns = Titled('ReverseDns', {
  server_id: Id,
  tenant_id: Id,
  address: Type.String(),
  reverse_dns: Nullable(Type.String({ description: 'Host name; null: none.' })),
  status: OneOf(
    ['applied', 'pending', 'failed'],
    '`applied`: the DNS server has it. Resolvers may answer with the former name for an hour.',
  ),
  changed_at: Nullable(Moment),
});
export type ReverseDns = Static<typeof ReverseDns>;

export const SetReverseDnsRequest = RequestBody('SetReverseDnsRequest', {
  reverse_dns: Type.String({
    minLength: 1,
    maxLength: 254,
    description: 'Host name, such as `web-1.example.net`, with a record that leads to the address.',
  }),
  force: Type.Optional(
    Type.Boolean({ description: 'Also a name that does not lead to the address (yet). Default: false.' }),
  ),
});
export type SetReverseDnsRequest = Static<typeof SetReverseDnsRequest>;

const onAddress = { id: 'address' } as const;
const onServerAddress = { id: 'server', address: 'server-address' } as const;
const reverseErrors = ['reverse_dns_not_supported'];
const moveErrors = ['server_busy', 'server_not_ready', 'unsupported_action'];

/** Addresses that an account keeps, with or without a server. */
export const addressEndpoints = [
  {
    id: 'listAddresses',
    call: 'GET /addresses',
    summary: 'List kept addresses',
    description:
      'The addresses that the workspace keeps, oldest first, and the number of further ones it may have. Other addresses of servers are in `public_ips` of each server.',
    query: ShortListQuery,
    responses: page(AddressList, 'The addresses.'),
  },
  {
    id: 'reserveAddress',
    call: 'POST /addresses',
    summary: 'Keep an address',
    description:
      'Reserves a free address of a location, or with `address` keeps one that a server has. A kept address outlives its servers and costs nothing; it is yours until you release it. Traffic, attacks, ports and findings stay with the server that had the address at that time.',
    body: ReserveAddressRequest,
    headers: ['Idempotency-Key'],
    responses: created(Address, 'The address.'),
    errors: [
      'address_kept',
      'limit_exceeded',
      'capacity_unavailable',
      // Of a repetition, when the address was released meanwhile.
      'not_found',
    ],
  },
  {
    id: 'readAddress',
    call: 'GET /addresses/{id}',
    summary: 'Read a kept address',
    description: 'One kept address of the workspace.',
    params: onAddress,
    responses: ok(Address, 'The address.'),
  },
  {
    id: 'updateAddress',
    call: 'PATCH /addresses/{id}',
    summary: 'Rename a kept address',
    description: 'Changes the name.',
    params: onAddress,
    body: UpdateAddressRequest,
    headers: ['If-Match'],
    responses: ok(Address, 'The address.'),
  },
  {
    id: 'releaseAddress',
    call: 'DELETE /addresses/{id}',
    summary: 'Release a kept address',
    description:
      'Gives the address back; another customer may get it later. An address that its server was deployed with stays with the server, and goes when the server is destroyed. Detach any other before.',
    params: onAddress,
    body: SelectionRequest,
    headers: ['If-Match'],
    responses: { 204: { description: 'Released.' } },
    errors: ['address_attached'],
  },
  {
    id: 'attachAddress',
    call: 'POST /addresses/{id}/attach',
    summary: 'Attach a kept address to a server',
    description:
      'The server may send from the address and receives what is sent to it once the action has succeeded; its firewall applies to it as well. The operating system isn’t changed: add the address to its network interface, or rebuild the server, which sets up all its addresses.',
    params: onAddress,
    body: AttachAddressRequest,
    headers: ['Idempotency-Key', 'If-Match'],
    responses: queued(ServerAction),
    errors: [...moveErrors, 'address_attached'],
  },
  {
    id: 'detachAddress',
    call: 'POST /addresses/{id}/detach',
    summary: 'Detach a kept address',
    description:
      'Takes the address from its server, which can’t send from it any more once the action has succeeded. You keep the address. The primary address of a server stays with it.',
    params: onAddress,
    body: SelectionRequest,
    headers: ['Idempotency-Key', 'If-Match'],
    responses: queued(ServerAction),
    errors: [...moveErrors, 'address_available', 'primary_address'],
  },
  {
    id: 'readReverseDns',
    call: 'GET /servers/{id}/addresses/{address}/reverse-dns',
    summary: 'Read the reverse DNS of an address',
    description: 'The name of a public address of the server.',
    params: onServerAddress,
    responses: ok(ReverseDns, 'The name.'),
  },
  {
    id: 'setReverseDns',
    call: 'PUT /servers/{id}/addresses/{address}/reverse-dns',
    summary: 'Set the reverse DNS of an address',
    description:
      'Names a public address of the server. The name must have an A or AAAA record with the address, unless `force` is true. It is removed when the server loses the address. Poll until `status` is `applied`, or subscribe to `server.reverse_dns_applied`.',
    params: onServerAddress,
    body: SetReverseDnsRequest,
    headers: ['If-Match'],
    responses: ok(ReverseDns, 'The name.'),
    errors: [...reverseErrors, 'reverse_dns_not_confirmed'],
  },
  {
    id: 'deleteReverseDns',
    call: 'DELETE /servers/{id}/addresses/{address}/reverse-dns',
    summary: 'Remove the reverse DNS of an address',
    description: 'The address has no name afterwards.',
    params: onServerAddress,
    body: SelectionRequest,
    headers: ['If-Match'],
    responses: { 204: { description: 'Removed, or being removed.' } },
    errors: reverseErrors,
  },
] as const satisfies readonly EndpointDeclaration[];
