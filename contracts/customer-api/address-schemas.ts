/** Bodies about addresses that an account keeps. */
import { type Static, Type } from 'typebox';
import { Nullable } from '../scalars.ts';
import { Id, Moment, Name, OneOf, Pagination, SlugOrId, TenantSelector } from './schema-kit.ts';

export const addressStates = ['available', 'attaching', 'attached', 'detaching'] as const;

export const Address = Type.Object(
  {
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
      description:
        'True for the first address of a server, which stays with it until the server is destroyed.',
    }),
    created_at: Moment,
    updated_at: Moment,
  },
  { title: 'Address' },
);
export type Address = Static<typeof Address>;

export const AddressList = Type.Object(
  {
    addresses: Type.Array(Address),
    limits: Type.Object({
      max: Type.Integer({ description: 'Maximum number of kept addresses of the account.' }),
      used: Type.Integer(),
    }),
    pagination: Pagination,
  },
  { title: 'AddressList' },
);

export const ReserveAddressRequest = Type.Object(
  {
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
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'ReserveAddressRequest', additionalProperties: false },
);
export type ReserveAddressRequest = Static<typeof ReserveAddressRequest>;

export const UpdateAddressRequest = Type.Object(
  { name: Name, tenant: Type.Optional(TenantSelector) },
  { title: 'UpdateAddressRequest', additionalProperties: false },
);
export type UpdateAddressRequest = Static<typeof UpdateAddressRequest>;

export const AttachAddressRequest = Type.Object(
  {
    server_id: Type.Integer({
      minimum: 1,
      'x-resource': 'server',
      description: 'A server of the workspace, at the location of the address, with a public address.',
    }),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'AttachAddressRequest', additionalProperties: false },
);
export type AttachAddressRequest = Static<typeof AttachAddressRequest>;

export const ReverseDns = Type.Object(
  {
    server_id: Id,
    tenant_id: Id,
    address: Type.String(),
    reverse_dns: Nullable(Type.String({ description: 'Host name; null: none.' })),
    status: OneOf(
      ['applied', 'pending', 'failed'],
      '`applied`: the DNS server has it. Resolvers may answer with the former name for an hour.',
    ),
    changed_at: Nullable(Moment),
  },
  { title: 'ReverseDns' },
);
export type ReverseDns = Static<typeof ReverseDns>;

export const SetReverseDnsRequest = Type.Object(
  {
    reverse_dns: Type.String({
      minLength: 1,
      maxLength: 254,
      description: 'Host name, such as `web-1.example.net`, with a record that leads to the address.',
    }),
    force: Type.Optional(
      Type.Boolean({ description: 'Also a name that does not lead to the address (yet). Default: false.' }),
    ),
    tenant: Type.Optional(TenantSelector),
  },
  { title: 'SetReverseDnsRequest', additionalProperties: false },
);
export type SetReverseDnsRequest = Static<typeof SetReverseDnsRequest>;
