/**
 * What both sides of the admin API agree on for one permission: the permission's name, what discovery advertises for it,
 * and, for a feed, its path, its schemas and its bound. Operations serves what it names and the monitor asks for it, so a
 * name or a version stands in one place.
 */
import type { TSchema } from 'typebox';

export type Capabilities = Readonly<Record<string, true | number>>;

export interface AdminContract {
  /** Of an admin project. */
  readonly permission: string;
  /** Flags and versions without which the monitor does not call. */
  readonly required: Capabilities;
  /** Flags and versions that the monitor uses where a receiver has them. */
  readonly optional?: Capabilities;
}

/** The contract of a feed: a POST of records that is answered by receipts. */
export interface FeedContract<Request extends TSchema = TSchema, Answer extends TSchema = TSchema>
  extends AdminContract {
  /** Below `/api/admin/v1`. */
  readonly path: string;
  readonly request: Request;
  readonly answer: Answer;
  /** The largest body that operations takes. */
  readonly bodyBytesMax: number;
}

/** What discovery says to a project that has the permission. */
export function advertised({ required, optional }: AdminContract): Capabilities {
  return { ...required, ...optional };
}

/** True when a receiver takes what an optional flag of a contract and its version stand for. */
export function takes(capabilities: Capabilities, { optional = {} }: AdminContract, flag: string): boolean {
  return [flag, `${flag}_version`].every((name) => name in optional && capabilities[name] === optional[name]);
}

/** True when a receiver with these capabilities speaks the contract in the version that we speak. */
export function isSpoken(capabilities: Capabilities, { required }: AdminContract): boolean {
  return Object.entries(required).every(([name, value]) => capabilities[name] === value);
}
