import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Clock } from '#common/clock/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import type { Content } from '#service-kit/pages/index.ts';
import type { SecondFactors } from '#service-kit/second-factors/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import type { SignInPeople, SignInPerson } from './people.ts';

/** What every program's account pages need. */
export interface AccountPagesDeps {
  sessions: Sessions;
  factors: SecondFactors;
  post: Post;
  clock: Clock;
  /** Where people reach this program; null: as the request says. */
  publicUrl: string | null;
}

export interface AccountPagesOptions extends AccountPagesDeps {
  /** The path of the pages below the scope's prefix, such as `/account`. */
  path: string;
  /** The whole path, such as `/console/account`. */
  base: string;
  people: SignInPeople;
  /** The person that the guard let in. */
  personOf: (request: FastifyRequest) => SignInPerson & { csrfToken: string };
  /** True where the person of this request must have a second factor. */
  isFactorRequired: (request: FastifyRequest) => boolean;
  /** Changes the password of the person of this request. Throws a `CodedError` with `details.field`. */
  changePassword: (request: FastifyRequest, given: { current: string; next: string }) => Promise<void>;
  /** Sends a page in the frame of its surface. */
  send: (
    request: FastifyRequest,
    reply: FastifyReply,
    page: { title: string; content: Content; toast?: string; status: number },
  ) => FastifyReply;
}
