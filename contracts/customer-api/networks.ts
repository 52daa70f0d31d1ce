/** Bodies about private networks and the servers on them. */
import { type Static, Type } from 'typebox';
import { Nullable, Strict } from '../scalars.ts';
import { both, created, type EndpointDeclaration, ok, page } from './endpoint.ts';
import {
  Id,
  Labels,
  LabelValue,
  Moment,
  Name,
  OneOf,
  Optional,
  PageOf,
  Pagination,
  pageQuery,
  plainTextPattern,
  RequestBody,
  SelectionRequest,
  ShortListQuery,
  SlugOrId,
  Titled,
} from './schema-kit.ts';

export const attachmentStates = ['attaching', 'attached', 'detaching', 'error'] as const;

export const PrivateNetworkAttachment = Titled('PrivateNetworkAttachment', {
  network_id: Id,
  name: Type.String(),
  cidr: Type.String(),
  ip: Type.String(),
  mac_address: Type.String(),
  state: OneOf(attachmentStates),
  requires_reboot: Type.Boolean({
    description: 'The operating system sees the change after the next reboot.',
  }),
  is_last_interface: Type.Boolean({
    description: 'The only interface of the server; it can not be detached.',
  }),
  attached_at: Nullable(Moment),
});
export type PrivateNetworkAttachment = Static<typeof PrivateNetworkAttachment>;

const networkFields = {
  id: Id,
  tenant_id: Id,
  name: Type.String(),
  description: Nullable(Type.String()),
  cidr: Type.String(),
  gateway: Type.Null({ description: 'A private network has no router; its first address is reserved.' }),
  location: Type.Object({ id: Id, slug: Type.String() }),
  state: OneOf(['active']),
  sync: Type.Object({
    state: OneOf(['pending', 'synced', 'error']),
    last_synced_at: Nullable(Moment),
    error: Nullable(Type.Object({ code: Type.String(), message: Type.String(), at: Moment })),
  }),
  member_count: Type.Integer({ description: 'Servers on the network, including those being detached.' }),
  available_ips: Type.Integer(),
  labels: Type.Record(Type.String(), Type.String()),
  created_at: Moment,
  updated_at: Moment,
};

export const NetworkSummary = Titled('NetworkSummary', networkFields);
export type NetworkSummary = Static<typeof NetworkSummary>;

export const Network = Titled('Network', {
  ...networkFields,
  members: Type.Array(
    Type.Object({
      server_id: Id,
      name: Type.String(),
      ip: Type.String(),
      mac_address: Type.String(),
      state: OneOf(attachmentStates),
    }),
  ),
});
export type Network = Static<typeof Network>;

export const NetworkList = Titled('NetworkList', {
  networks: Type.Array(NetworkSummary),
  limits: Type.Object({
    max: Type.Integer({ description: 'Maximum number of networks of the account.' }),
    used: Type.Integer(),
  }),
  pagination: Pagination,
});

export const AttachmentList = PageOf('AttachmentList', 'networks', PrivateNetworkAttachment);

const Description = Nullable(Type.String({ maxLength: 255, pattern: plainTextPattern }));

export const CreateNetworkRequest = RequestBody('CreateNetworkRequest', {
  name: Name,
  cidr: Type.Optional(
    Type.String({
      maxLength: 43,
      description:
        'A block of /16 to /29 within 10.0.0.0/8, 172.16.0.0/12 or 192.168.0.0/16 that does not overlap with another network of the account. Default: the next free /24.',
    }),
  ),
  location: Type.Optional(SlugOrId('The location; needed where there is more than one')),
  description: Type.Optional(Description),
  labels: Type.Optional(Labels),
});
export type CreateNetworkRequest = Static<typeof CreateNetworkRequest>;

export const ChangeNetworkRequest = RequestBody('ChangeNetworkRequest', {
  name: Type.Optional(Name),
  description: Type.Optional(Description),
  labels: Type.Optional(
    Type.Record(Type.String({ pattern: '^[A-Za-z0-9._/-]{1,63}$' }), Nullable(LabelValue), {
      maxProperties: 32,
      additionalProperties: false,
      description: 'Merged with the present labels; null removes one.',
    }),
  ),
});
export type ChangeNetworkRequest = Static<typeof ChangeNetworkRequest>;

export const AttachRequest = RequestBody('AttachRequest', {
  network_id: Type.Integer({ minimum: 1, 'x-resource': 'network' }),
  ip: Type.Optional(
    Type.String({ maxLength: 15, description: 'An address of the network. Default: the lowest free one.' }),
  ),
});
export type AttachRequest = Static<typeof AttachRequest>;

export const ListNetworksQuery = Strict({
  ...Optional({
    name: Type.String({ maxLength: 64 }),
    label: Type.String({
      maxLength: 1_000,
      description:
        'Terms such as `env=prod`, `tier!=test`, `owner` or `!old`, separated by commas; all must match.',
    }),
    server_id: Type.Integer({ minimum: 1, description: 'Networks of this server.', 'x-resource': 'server' }),
  }),
  ...pageQuery(50).properties,
});
export type ListNetworksQuery = Static<typeof ListNetworksQuery>;

const onNetwork = { id: 'network' } as const;

/** Private networks, and the servers on them. */
export const networkEndpoints = [
  {
    id: 'listNetworks',
    call: 'GET /networks',
    versions: both,
    summary: 'List private networks',
    description:
      'The private networks of the workspace, oldest first, and the number of further ones it may have.',
    query: ListNetworksQuery,
    responses: page(NetworkList, 'A page of networks.'),
  },
  {
    id: 'createNetwork',
    call: 'POST /networks',
    versions: both,
    summary: 'Create a private network',
    description:
      'A network belongs to one location and connects servers of this account only. Its `cidr` can not be changed. It is usable at once; `sync.state` becomes `synced` when all hypervisors have it.',
    body: CreateNetworkRequest,
    headers: ['Idempotency-Key'],
    responses: created(Network, 'The network.'),
    errors: ['cidr_not_allowed', 'cidr_overlap', 'limit_exceeded', 'not_found'],
  },
  {
    id: 'readNetwork',
    call: 'GET /networks/{id}',
    versions: both,
    summary: 'Read a private network',
    description: 'One network with its members.',
    params: onNetwork,
    responses: ok(Network, 'The network.'),
  },
  {
    id: 'changeNetwork',
    call: 'PATCH /networks/{id}',
    versions: both,
    summary: 'Change a private network',
    description:
      'Changes name, description and labels. Labels are merged; null removes a label. `cidr` and `location` can not be changed.',
    params: onNetwork,
    body: ChangeNetworkRequest,
    headers: ['If-Match'],
    responses: { 200: { description: 'The changed network.', schema: Network, headers: ['ETag'] } },
    errors: ['immutable_field'],
  },
  {
    id: 'deleteNetwork',
    call: 'DELETE /networks/{id}',
    versions: both,
    summary: 'Delete a private network',
    description:
      'Deletes a network without members. A server that is being detached still counts: then the 409 is `retryable`, with the time in `Retry-After`.',
    params: onNetwork,
    body: SelectionRequest,
    headers: ['If-Match'],
    responses: { 204: { description: 'Deleted.' } },
    errors: ['network_in_use'],
  },
  {
    id: 'syncNetwork',
    call: 'POST /networks/{id}/sync',
    isIdempotent: true,
    versions: both,
    summary: 'Sync a private network',
    description:
      'Applies the stored membership to the hypervisors again. Calls while a sync is pending return the same sync. Its result is in `sync`.',
    params: onNetwork,
    body: SelectionRequest,
    headers: ['If-Match'],
    responses: { 202: { description: 'The network with a pending sync.', schema: Network } },
  },
  {
    id: 'listServerNetworks',
    call: 'GET /servers/{id}/networks',
    versions: both,
    summary: 'List private networks of a server',
    description: 'The attachments of the server, as in its `private_networks`.',
    params: { id: 'server' },
    query: ShortListQuery,
    responses: page(AttachmentList, 'A page of attachments.'),
  },
  {
    id: 'attachServer',
    call: 'POST /servers/{id}/networks',
    isIdempotent: true,
    versions: both,
    summary: 'Attach a server to a private network',
    description:
      'Adds a network interface of the server to the network, with the given or the lowest free address. Poll the server until the `state` of the attachment is `attached`. Idempotent: with the same or no address, a repeated call returns the existing attachment with 200.',
    params: { id: 'server' },
    body: AttachRequest,
    headers: ['If-Match'],
    responses: {
      200: { description: 'The existing attachment.', schema: PrivateNetworkAttachment },
      201: { description: 'The attachment, attached.', schema: PrivateNetworkAttachment },
      202: { description: 'The attachment, pending.', schema: PrivateNetworkAttachment },
    },
    errors: ['already_attached', 'ip_in_use', 'limit_exceeded', 'server_not_ready'],
  },
  {
    id: 'detachServer',
    call: 'DELETE /servers/{id}/networks/{network_id}',
    versions: both,
    summary: 'Detach a server from a private network',
    description:
      'Removes the network interface. Poll the server until it is no longer in `private_networks`. The last interface of a server without a public address can not be removed.',
    params: { id: 'server', network_id: 'network' },
    body: SelectionRequest,
    headers: ['If-Match'],
    responses: { 202: { description: 'The attachment, being removed.', schema: PrivateNetworkAttachment } },
    errors: ['last_interface'],
  },
] as const satisfies readonly EndpointDeclaration[];
