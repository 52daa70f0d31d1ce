/** What an endpoint says of itself, and what endpoints have in common. */
import { type TSchema, Type } from 'typebox';
import { SelectionRequest } from './schema-kit.ts';

/** Kinds of resources that a caller names by id; ownership is checked for each. The catalogue is public. */
export type ResourceKind =
  | 'tenant'
  | 'catalog'
  | 'server'
  | 'network'
  | 'address'
  | 'server-address'
  | 'action'
  | 'snapshot'
  | 'firewall-rule'
  | 'ssh-key'
  | 'key'
  | 'webhook'
  | 'delivery';

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An endpoint as it is declared; what follows from its declaration is not said there (`completeEndpoint`). */
export interface EndpointDeclaration {
  /** Also the operation's id in the document, with the version before it. */
  id: string;
  /** Its path is below `/api/v1` and `/api/v2`. */
  call: `${Method} /${string}`;
  /** Default v2 alone. */
  versions?: readonly ('v1' | 'v2')[];
  summary: string;
  description: string;
  /** Kind of resource that each path parameter names: whose it is, is checked. */
  params?: Readonly<Record<string, ResourceKind>>;
  query?: TSchema;
  body?: TSchema;
  /** Of v1, where it is another. */
  bodyV1?: TSchema;
  /** A body may be left out, as one that only selects the workspace. */
  isBodyOptional?: boolean;
  /** Request headers that change what the call does. */
  headers?: readonly ('Idempotency-Key' | 'If-Match' | 'Prefer')[];
  /** A POST that does the same however often it is sent, also without an `Idempotency-Key`. */
  isIdempotent?: boolean;
  /** Data on a disk is lost for good: tools ask before they make the call. */
  destroys?: boolean;
  /** How long a caller may use an answer without asking again; absent: it asks each time. */
  maxAgeSeconds?: number;
  /** False for what is not about one workspace. */
  selectsTenant?: boolean;
  responses: Readonly<
    Record<
      number,
      {
        description: string /** Absent: an answer without a body. */;
        schema?: TSchema;
        headers?: readonly string[];
        /** Other media types of the same answer. */
        alsoAs?: Readonly<Record<string, TSchema>>;
      }
    >
  >;
  /** Reasons (or codes without one) beyond those of every call and those that follow from its parts. */
  errors?: readonly string[];
}

/** What an endpoint says of itself. */
export interface Endpoint extends Omit<EndpointDeclaration, 'call'> {
  method: Method;
  path: string;
  versions: readonly ('v1' | 'v2')[];
  params: Readonly<Record<string, ResourceKind>>;
  selectsTenant: boolean;
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
  'invalid_fields',
  'internal_error',
  'unavailable',
] as const;

/** An endpoint of both versions. */
export const both = ['v1', 'v2'] as const;
/** Reasons of a call that may carry `If-Match`. */
export const conditionErrors = ['invalid_header', 'etag_mismatch'];
/** The 200 of a read. */
export const ok = (schema: TSchema, description: string) => ({
  200: { description, schema, headers: ['ETag'] },
});
/** The 200 of a list. */
export const page = (schema: TSchema, description: string) => ({
  200: { description, schema, headers: ['ETag', 'Link'] },
});
/** The 201 of what was made. */
export const created = (schema: TSchema, description: string) => ({
  201: { description, schema, headers: ['ETag', 'Location', 'Idempotent-Replayed'] },
});
/** The 202 of an action. */
export const queued = (schema: TSchema) => ({
  202: { description: 'The action, queued.', schema, headers: ['Idempotent-Replayed'] },
});

/** The endpoint with what follows from its call, its body and its headers. */
export function completeEndpoint({ call, ...declared }: EndpointDeclaration): Endpoint {
  const { versions = ['v2'], params = {}, selectsTenant = true, errors = [], headers = [], body } = declared;
  const [method, path] = call.split(' ') as [Method, string];
  const { properties = {} } = (declared.query ?? {}) as { properties?: object };
  return {
    ...{ ...declared, method, path, versions, params, selectsTenant },
    isBodyOptional: declared.isBodyOptional ?? body === SelectionRequest,
    errors: [
      ...(body ? ['invalid_json', 'payload_too_large', 'unsupported_media_type', 'invalid_fields'] : []),
      ...(headers.includes('If-Match') ? conditionErrors : []),
      ...('cursor' in properties ? ['invalid_cursor'] : []),
      ...(Object.keys(params).length > 0 ? ['not_found'] : []),
      ...(method === 'GET' ? [] : ['read_only_key']),
      ...errors,
      ...(headers.includes('Idempotency-Key')
        ? ['invalid_header', 'idempotency_key_reused', 'idempotency_in_progress']
        : []),
    ],
  };
}

/** Path ids are checked by hand, so that what can't be an id is the 404 of one that doesn't exist. */
export const PathId = Type.Integer({ minimum: 1, description: 'An id from a list or an earlier answer.' });
/** Of things with other ids. */
export const pathIds: Partial<Record<ResourceKind, TSchema>> = {
  catalog: Type.Union([Type.String({ minLength: 1, maxLength: 64 }), PathId], { description: 'Slug or id.' }),
  key: Type.String({ minLength: 1, maxLength: 64, description: 'The public part of the token.' }),
  'server-address': Type.String({ maxLength: 45, description: 'One of `public_ips` of the server.' }),
};
