/** What signing in needs from the program. */
import type { Clock } from '#common/clock/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import type { DemoRole } from './demo.routes.ts';
import type { SignInPeople } from './people.ts';

export interface SignInDeps {
  db: () => Queryable;
  /** "Virtual servers", "Monitor". */
  area: string;
  people: SignInPeople;
  sessions: Sessions;
  factors: SecondFactors;
  post: Post;
  clock: Clock;
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
  /** People whom one click signs in (`demoRolesOf`). */
  demoRoles?: readonly DemoRole[];
}
