import type { RequestOrigin } from '#service-kit/http/index.ts';

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
