/**
 * Ordering that dies at a chosen point: by SIGKILL in a process of its own, or, many times faster, by being cut off:
 * its connections are destroyed and none of its calls ever returns. What is left behind is the same.
 */
import Stripe from 'stripe';
import { systemActor } from '#operations/accounts/index.ts';
import { createStripeGateway } from '#operations/payments/gateways/stripe.ts';
import type { PaymentGateway } from '#operations/payments/index.ts';
import { createOrdering, type Ordering } from './ordering.ts';

export const killPoints = [
  'before the order is committed',
  'order committed',
  'gateway knows the charge',
  'gateway’s name stored',
  'charge sent, not executed',
  'charge executed, not answered',
  'before the outcome is committed',
  'outcome committed',
  'before provisioning is committed',
] as const;
export type KillPoint = (typeof killPoints)[number];

/** What is being ordered now, and where it dies. */
interface Course {
  killAt: KillPoint | null;
  commits: number;
  /** Cut off instead of killed: what the gateway does to a process of its own is done here. */
  isCut: boolean;
  die(): void;
}

/** Which commit of an order each of these points belongs to. */
const commitPoints: Partial<Record<KillPoint, { commit: number; when: 'before' | 'after' }>> = {
  'before the order is committed': { commit: 1, when: 'before' },
  'order committed': { commit: 1, when: 'after' },
  'before the outcome is committed': { commit: 2, when: 'before' },
  'outcome committed': { commit: 2, when: 'after' },
  'before provisioning is committed': { commit: 3, when: 'before' },
};

/** `paysTwice`: the planted fault of a new id for a retry. */
function createCrashingGateway(usual: PaymentGateway, course: Course, paysTwice: boolean): PaymentGateway {
  const charges = new Map<string, Parameters<PaymentGateway['prepare']>[0]>();
  return {
    ...usual,
    async prepare(charge) {
      charges.set(charge.key, charge);
      const prepared = await usual.prepare(charge);
      if (course.killAt === 'gateway knows the charge') await end(course);
      return prepared;
    },
    async take(key, reference) {
      if (course.killAt === 'gateway’s name stored') await end(course);
      if (course.isCut && course.killAt === 'charge sent, not executed') {
        void usual.take(key, reference).catch(() => {});
        await end(course);
      }
      if (course.isCut && course.killAt === 'charge executed, not answered') {
        await usual.take(key, reference).catch(() => {});
        await end(course);
      }
      try {
        return await usual.take(key, reference);
      } catch (error) {
        if (!paysTwice) throw error;
        const fresh = `${key}-again`;
        const prepared = await usual.prepare({ ...charges.get(key)!, key: fresh });
        if (prepared.kind === 'declined') throw error;
        return usual.take(fresh, prepared.reference);
      }
    },
  };
}

function countCommits(ordering: Ordering, course: Course): void {
  ordering.pool.on('connect', (client) => {
    const query = client.query.bind(client) as (...given: unknown[]) => Promise<unknown>;
    client.query = ((...given: unknown[]) => {
      const text = typeof given[0] === 'string' ? given[0] : (given[0] as { text?: string })?.text;
      if (text?.toLowerCase() !== 'commit') return query(...given);
      course.commits += 1;
      const point = course.killAt === null ? undefined : commitPoints[course.killAt];
      if (point?.commit !== course.commits) return query(...given);
      if (point.when === 'before') return end(course);
      return query(...given).then(() => end(course));
    }) as typeof client.query;
  });
}

/** Nothing comes after it. */
function end(course: Course): Promise<never> {
  course.die();
  return new Promise(() => {});
}

export interface CrashingOrdering {
  /** What the caller was told. */
  order(tenantId: number, killAt: KillPoint | null): Promise<string>;
  ordering: Ordering;
}

export function createCrashingOrdering(
  databaseUrl: string,
  stripeUrl: string,
  options: { paysTwice: boolean; die: () => void; isCut?: boolean },
): CrashingOrdering {
  const course: Course = { killAt: null, commits: 0, isCut: options.isCut ?? false, die: options.die };
  const waiting = (timeoutMs: number) =>
    createStripeGateway(Stripe, {
      secretKey: 'sk_test_x',
      apiUrl: stripeUrl,
      callbackSecret: null,
      timeoutMs,
    });
  // A charge is always prepared; what is silent is the answer to taking it.
  const stripe = { ...waiting(1_000), prepare: waiting(120_000).prepare };
  const gateway = createCrashingGateway(stripe, course, options.paysTwice);
  const ordering = createOrdering(databaseUrl, { gateway, connections: 3 });
  countCommits(ordering, course);
  return {
    ordering,
    async order(tenantId, killAt) {
      course.killAt = killAt;
      course.commits = 0;
      return ordering.ordering
        .createServer(systemActor, { tenantId, plan: 'small', image: 'debian-12' })
        .then(
          () => '201',
          (error) => error.details?.failure?.reason ?? error.code ?? String(error),
        );
    },
  };
}

/** Orders in this process, cut off at `killAt`; null when that happened. */
export async function orderAndCut(
  databaseUrl: string,
  stripeUrl: string,
  request: { tenantId: number; killAt: KillPoint | null; paysTwice: boolean },
): Promise<string | null> {
  const { promise: dead, resolve } = Promise.withResolvers<null>();
  const streams = new Set<{ destroy(): void }>();
  const worker = createCrashingOrdering(databaseUrl, stripeUrl, {
    paysTwice: request.paysTwice,
    isCut: true,
    die() {
      for (const stream of streams) stream.destroy();
      resolve(null);
    },
  });
  worker.ordering.pool.on('connect', (client) => {
    streams.add((client as unknown as { connection: { stream: { destroy(): void } } }).connection.stream);
  });
  const answer = await Promise.race([dead, worker.order(request.tenantId, request.killAt)]);
  // The pool of one that was cut off never ends: a client of it is held by a call that never returns.
  if (answer !== null) await worker.ordering[Symbol.asyncDispose]();
  return answer;
}
