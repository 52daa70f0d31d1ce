import type { RequestOrigin } from '#service-kit/http/index.ts';

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

/** What every kind of actor may carry for the audit trail; guards set it where the request is known. */
export interface Traceable {
  /** The email address or name by which people know the actor, as it is now. */
  readonly name?: string | undefined;
  /** From where the request came; absent for background jobs and commands. */
  readonly origin?: RequestOrigin | undefined;
}

/** The actors of both programs, as the audit trail tells them apart. A program's own `Actor` fits one of these. */
export type AuditActor = Traceable &
  (
    | { readonly kind: 'customer'; readonly personId: number; readonly keyId: string | null }
    | { readonly kind: 'staff'; readonly personId: number }
    | { readonly kind: 'project'; readonly projectId: number }
    /** An operator of the monitor. */
    | { readonly kind: 'person'; readonly id: number }
    | { readonly kind: 'sensor'; readonly id: number }
    /** `job` names the background job or the command, such as `add-credit`. */
    | { readonly kind: 'system'; readonly job?: string | undefined }
    /** A visitor who proved nothing but a link or a payment page, such as the holder of an invitation. */
    | { readonly kind: 'anonymous' }
  );

export type ActorKind = 'person' | 'key' | 'staff' | 'token' | 'operator' | 'sensor' | 'system' | 'anonymous';

export interface StoredActor {
  kind: ActorKind;
  id: string | null;
  name: string | null;
  /** For whom a key acts. */
  personId: number | null;
}

/** An actor as the audit trail keeps it. */
export function describeActor(actor: AuditActor): StoredActor {
  const name = actor.name ?? null;
  switch (actor.kind) {
    case 'customer':
      return actor.keyId === null
        ? { kind: 'person', id: String(actor.personId), name, personId: actor.personId }
        : { kind: 'key', id: actor.keyId, name, personId: actor.personId };
    case 'staff':
      return { kind: 'staff', id: String(actor.personId), name, personId: actor.personId };
    case 'project':
      return { kind: 'token', id: String(actor.projectId), name, personId: null };
    case 'person':
      return { kind: 'operator', id: String(actor.id), name, personId: actor.id };
    case 'sensor':
      return { kind: 'sensor', id: String(actor.id), name, personId: null };
    case 'system':
      return { kind: 'system', id: actor.job ?? null, name, personId: null };
    case 'anonymous':
      return { kind: 'anonymous', id: null, name, personId: null };
  }
}

// What an entry of the audit trail says as a sentence, such as `Casey Customer deployed server db-1`.

/** An actor without a name, at the start of a sentence. */
const namelessActors: Readonly<Record<ActorKind, string>> = {
  person: 'A former member',
  key: 'An API key',
  staff: 'An operator',
  token: 'An admin project',
  operator: 'An operator',
  sensor: 'A sensor',
  system: 'The system',
  anonymous: 'A visitor',
};

/** What is done in the words of the pages, where the name of the operation has other ones; `%` is the subject. */
const phrases: Readonly<Record<string, string>> = {
  'card.set_default': 'made % the default card',
  'credit.adjust': 'adjusted the credit of %',
  'credit.charge': 'charged a card for %',
  'credit.deposit': 'added credit to %',
  'finding.end_ignore': 'stopped ignoring a finding of %',
  'finding.ignore': 'ignored a finding of %',
  'firewall.add': 'added a firewall rule to %',
  'firewall.edit': 'edited a firewall rule of %',
  'firewall.move': 'moved a firewall rule of %',
  'firewall.policies': 'changed the default actions of the firewall of %',
  'firewall.remove': 'removed a firewall rule of %',
  'firewall.replace': 'replaced the firewall rules of %',
  'firewall.switch': 'switched the firewall of %',
  'guard.switch': 'switched the guard of %',
  'invitation.accept': 'accepted the invitation of %',
  'invitation.create': 'invited %',
  'order.place': 'placed %',
  'organization.add_member': 'added %',
  'organization.remove_member': 'removed %',
  'person.change_password': 'changed the password of %',
  'person.set_password_by_link': 'set the password of % by a link',
  'protect.change_settings': 'changed the protection settings of %',
  'protect.end_ignore': 'stopped ignoring a finding of %',
  'protect.ignore_finding': 'ignored a finding of %',
  'protect.request_port_scan': 'requested a port scan of %',
  'second_factor.add_app': 'added an authenticator app',
  'second_factor.add_passkey': 'added a passkey',
  'second_factor.remove_app': 'removed an authenticator app',
  'second_factor.remove_passkey': 'removed a passkey',
  'second_factor.renew_recovery_codes': 'renewed the recovery codes',
  'server.attach_address': 'attached an address to %',
  'server.attach_iso': 'attached an ISO to %',
  'server.cancel_action': 'cancelled an action of %',
  'server.create': 'deployed %',
  'server.create_snapshot': 'took a snapshot of %',
  'server.delete_snapshot': 'deleted a snapshot of %',
  'server.describe': 'edited %',
  'server.detach_address': 'detached an address from %',
  'server.detach_iso': 'detached the ISO of %',
  'server.open_console': 'opened the console of %',
  'server.rebuild': 'rebuilt %',
  'server.rescue': 'started the rescue system of %',
  'server.reset': 'reset %',
  'server.reset_password': 'set a new root password of %',
  'server.resize': 'resized %',
  'server.restore_snapshot': 'restored a snapshot of %',
  'server.set_reverse_dns': 'set the reverse DNS of %',
  'server.shutdown': 'shut down %',
  'server.stop': 'powered off %',
  'server.unrescue': 'ended the rescue of %',
  'session.end': 'signed out',
  'session.end_one': 'signed another browser out',
  'session.end_others': 'signed all other browsers out',
  'session.start': 'signed in',
  'sign_on.issue_assertion': 'signed % in at the other console',
};

/** Verbs whose past is not made by adding `d` or `ed`. */
const pasts: Readonly<Record<string, string>> = {
  cancel: 'cancelled',
  choose: 'chose',
  enrol: 'enrolled',
  give: 'gave',
  map: 'mapped',
  reset: 'reset',
  send: 'sent',
  set: 'set',
  stop: 'stopped',
};

/** Kinds of subjects that pages call otherwise. */
const kinds: Readonly<Record<string, string>> = { tenant: 'workspace', key: 'API key', ssh_key: 'SSH key' };

/** Members of a new thing that belong into its sentence. */
const details = ['plan', 'image'];

/** Who did what to what; the members that changed are in the entry. */
export function sentenceOf(entry: StoredEntry): string {
  const { operation, actorKind, actorName, subjectKind, subjectId, subjectName, after } = entry;
  const who = actorName ?? namelessActors[actorKind];
  const subject = `${kinds[subjectKind] ?? subjectKind.replaceAll('_', ' ')} ${subjectName ?? subjectId}`;
  const more = details.map((name) => after?.[name]).filter((value) => typeof value === 'string');
  return [`${who} ${phraseOf(operation).replace('%', () => subject)}`, ...more].join(', ');
}

/** `thing.set_full_name` reads `set the full name of %`. */
function phraseOf(operation: string): string {
  const known = phrases[operation];
  if (known !== undefined) return known;
  const [verb = '', ...object] = (operation.split('.')[1] ?? operation).split('_');
  const past = pasts[verb] ?? (verb.endsWith('e') ? `${verb}d` : `${verb}ed`);
  return object.length === 0 ? `${past} %` : `${past} the ${object.join(' ')} of %`;
}
