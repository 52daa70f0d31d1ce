/** What an endpoint says of itself, and what endpoints have in common. */
import { type TSchema, Type } from 'typebox';

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

export interface Endpoint {
  /** Also the operation's id in the document, with the version before it. */
  id: string;
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Below `/api/v1` and `/api/v2`. */
  path: string;
  versions: readonly ('v1' | 'v2')[];
  summary: string;
  description: string;
  /** Kind of resource that each path parameter names: whose it is, is checked. */
  params: Readonly<Record<string, ResourceKind>>;
  query?: TSchema;
  body?: TSchema;
  /** Of v1, where it is another. */
  bodyV1?: TSchema;
  /** A body may be left out. */
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
  selectsTenant: boolean;
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
  'invalid_fields',
  'internal_error',
  'unavailable',
] as const;

/** An endpoint of both versions. */
export const both = ['v1', 'v2'] as const;
/** Reasons of every call with a body. */
export const bodyErrors = ['invalid_json', 'payload_too_large', 'unsupported_media_type', 'invalid_fields'];
/** Reasons of a call that may carry an `Idempotency-Key`. */
export const idempotencyErrors = ['invalid_header', 'idempotency_key_reused', 'idempotency_in_progress'];
/** Reasons of a call that may carry `If-Match`. */
export const conditionErrors = ['invalid_header', 'etag_mismatch'];
/** The 200 of a read. */
export const ok = (schema: TSchema, description: string) => ({
  200: { description, schema, headers: ['ETag'] },
});

/** Path ids are checked by hand, so that what can't be an id is the 404 of one that doesn't exist. */
export const PathId = Type.Integer({ minimum: 1, description: 'An id from a list or an earlier answer.' });
/** Of things with other ids. */
export const pathIds: Partial<Record<ResourceKind, TSchema>> = {
  catalog: Type.Union([Type.String({ minLength: 1, maxLength: 64 }), PathId], { description: 'Slug or id.' }),
  key: Type.String({ minLength: 1, maxLength: 64, description: 'The public part of the token.' }),
  'server-address': Type.String({ maxLength: 45, description: 'One of `public_ips` of the server.' }),
};
