/**
 * `RateLimit` and `RateLimit-Policy` as draft-ietf-httpapi-ratelimit-headers-10 writes them: lists of named policies, so
 * that a client can tell which limit it is near. The monthly pool is not among them: it never blocks.
 */
import type { FastifyReply } from 'fastify';
import { type CodedError, hasCode } from '#common/errors/index.ts';
import type { DeployBudget, PaymentFailure } from '#operations/ordering/index.ts';

interface RateLimit {
  policy: 'key' | 'deploy';
  limit: number;
  windowSeconds: number;
  remaining: number;
  /** Until there is room for one more than now. */
  resetSeconds: number;
}

/** The draft's problem type for a limit that is used up. */
export function quotaExceeded(policy: RateLimit['policy']): Record<string, unknown> {
  return {
    type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
    'violated-policies': [policy],
  };
}

/** Adds a limit to those that the answer names. */
export function addRateLimit(reply: FastifyReply, rate: RateLimit): void {
  append(reply, 'ratelimit-policy', `"${rate.policy}";q=${rate.limit};w=${rate.windowSeconds}`);
  append(reply, 'ratelimit', `"${rate.policy}";r=${rate.remaining};t=${rate.resetSeconds}`);
}

/** The account's deployments of the last hour, which are counted in durable orders and not in memory. */
export function addDeployBudget(reply: FastifyReply, { limit, used, resetSeconds }: DeployBudget): void {
  const remaining = Math.max(0, limit - used);
  addRateLimit(reply, { policy: 'deploy', limit, windowSeconds: 3_600, remaining, resetSeconds });
}

/** A refusal for lack of deployments names that limit too, and so does a charge that failed: its order was one. */
export function addRefusedBudget(reply: FastifyReply, error: unknown): void {
  if (hasCode(error, 'orders.deploy_rate'))
    addDeployBudget(reply, (error as CodedError).details.deploys as DeployBudget);
  if (!hasCode(error, 'orders.payment_failed')) return;
  // A replay takes no deployment, and so names none.
  const { deploys } = (error as CodedError).details.failure as Partial<PaymentFailure>;
  if (deploys !== undefined) addDeployBudget(reply, deploys);
}

function append(reply: FastifyReply, name: string, item: string): void {
  const before = reply.getHeader(name);
  reply.header(name, before === undefined ? item : `${String(before)}, ${item}`);
}
