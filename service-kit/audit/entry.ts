import type { ActorKind } from './actor.ts';

/** What a change was, as the operation that makes it says it. */
export interface AuditEntry {
  /** `<subject>.<verb>`, such as `server.destroy`; stable, because people search by it. */
  operation: string;
  subject: { kind: string; id: string | number; name?: string | null };
  /** Whose thing it is; customers read the entries of their own organization. */
  organizationId?: number | null;
  tenantId?: number | null;
  /** The members that changed, as they were and as they are. Absent before a creation and after a removal. */
  before?: object | null;
  after?: object | null;
}

/** An entry as it is read. */
export interface StoredEntry {
  id: number;
  occurredAtMs: number;
  operation: string;
  actorKind: ActorKind;
  actorId: string | null;
  actorName: string | null;
  personId: number | null;
  sourceAddress: string | null;
  requestId: string | null;
  subjectKind: string;
  subjectId: string;
  subjectName: string | null;
  organizationId: number | null;
  tenantId: number | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

const secretName = /secret|password|token|authorization|cookie|digest|hash|signature|private_?key/i;
const textMax = 2_000;
const listMax = 200;
const depthMax = 6;

/**
 * Values as they may be kept: a member whose name says secret is replaced, long texts and lists are cut and say so.
 * A name such as `hasSecret` or `tokenId` holds no secret and stays.
 */
export function keepable(value: unknown, name = '', depth = 0): unknown {
  if (value === null || value === undefined) return null;
  if (typeof value === 'boolean' || typeof value === 'number') return value;
  if (secretName.test(name) && !/^(is|has)[A-Z_]|id$|ids$|count$|at$/i.test(name)) return '[hidden]';
  if (value instanceof Date) return value.toISOString();
  if (typeof value === 'bigint') return String(value);
  if (typeof value === 'string') {
    // PostgreSQL keeps no U+0000, and an entry must not be what makes a change fail.
    const text = value.replaceAll('\u0000', '\ufffd');
    return text.length > textMax ? `${text.slice(0, textMax)}… (${text.length} characters)` : text;
  }
  if (depth >= depthMax) return '[nested too deep]';
  if (value instanceof Set || Array.isArray(value)) {
    const all = [...value];
    const kept = all.slice(0, listMax).map((each) => keepable(each, name, depth + 1));
    return all.length > listMax ? [...kept, `… (${all.length} in all)`] : kept;
  }
  if (typeof value !== 'object') return null;
  const kept: Record<string, unknown> = {};
  for (const [member, each] of Object.entries(value))
    if (each !== undefined) kept[member] = keepable(each, member, depth + 1);
  return kept;
}

/** The members in which two states differ, for `before` and `after`. */
export function changedMembers<State extends object>(
  before: State,
  after: State,
): { before: Partial<State>; after: Partial<State> } {
  const changed = { before: {} as Partial<State>, after: {} as Partial<State> };
  for (const name of new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof State>) {
    if (JSON.stringify(keepable(before[name])) === JSON.stringify(keepable(after[name]))) continue;
    changed.before[name] = before[name];
    changed.after[name] = after[name];
  }
  return changed;
}
