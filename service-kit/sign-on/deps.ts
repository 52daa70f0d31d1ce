import type { Clock } from '#common/clock/index.ts';
import type { AuditActor } from '#service-kit/audit/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Secrets } from '#service-kit/secrets/index.ts';
import type { SignInPerson } from '#service-kit/sign-in/index.ts';

/** `Actor`: the actors of the program. */
export interface SignOnDeps<Actor extends AuditActor> {
  db: () => Queryable;
  clock: Clock;
  secrets: Secrets;
  /** An operator of this program who may sign in; null for everyone else, such as customers and deactivated people. */
  findOperator: (personId: number) => Promise<SignInPerson | null>;
  /** Throws for actors that may not change who is trusted. */
  requireOperator: (actor: Actor) => void;
  /** Also http addresses of other machines. */
  allowsInsecureHttp: boolean;
}
