/**
 * The built-in gateway: it moves no money, keeps its books in the database, and behaves as the chosen test card says.
 *
 * It takes test numbers only, so a real card number cannot be stored by mistake. Its page is part of the portal.
 */
import { randomBytes } from 'node:crypto';
import { type Clock, systemClock } from '#common/clock/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';
import { type GatewayState, gatewayKind, type PaymentGateway, type TestCard } from './gateway.ts';
import * as books from './test-store.ts';

/** What happens to a charge of this card. `lost` cards answer too late: `taken` after the money moved, `untaken` before. */
type Behaviour = 'succeeds' | 'declines' | 'lost_taken' | 'lost_untaken';

const testCards: readonly (TestCard & { behaviour: Behaviour; brand: string })[] = [
  { number: '4242424242424242', behaviour: 'succeeds', brand: 'visa', label: 'Every charge succeeds' },
  {
    number: '5555555555554444',
    behaviour: 'succeeds',
    brand: 'mastercard',
    label: 'Every charge succeeds (Mastercard)',
  },
  { number: '4000000000000002', behaviour: 'declines', brand: 'visa', label: 'Every charge is declined' },
  {
    number: '4000000000000119',
    behaviour: 'lost_taken',
    brand: 'visa',
    label: 'Money is taken, but the gateway’s answer is lost',
  },
  {
    number: '4000000000000259',
    behaviour: 'lost_untaken',
    brand: 'visa',
    label: 'The gateway does not answer, nothing is taken',
  },
];

const answerMs = 2_000;

export const test = gatewayKind({
  settings: {},
  create: async (_settings, deps) => createTestGateway(deps),
});

export function createTestGateway(deps: { db: () => Queryable; clock?: Clock }): PaymentGateway {
  const clock = deps.clock ?? systemClock;
  const cardOf = (cardReference: string) =>
    testCards.find((card) => cardReference.startsWith(`tcard_${card.number}_`));
  return {
    name: 'test',
    cardEntry: { testCards },
    async prepare(charge) {
      if (!cardOf(charge.cardReference)) return { kind: 'declined', reason: 'card_unknown' };
      return { kind: 'prepared', reference: await books.insertPrepared(deps.db(), charge) };
    },
    async take(_key, reference) {
      const charge = await books.findCharge(deps.db(), reference);
      const behaviour = charge && cardOf(charge.cardReference)?.behaviour;
      if (behaviour === 'lost_untaken') return lose(clock);
      await books.decide(deps.db(), reference, behaviour === 'declines' ? 'declined' : 'succeeded');
      if (behaviour === 'lost_taken') return lose(clock);
      return stateOf(await books.findCharge(deps.db(), reference));
    },
    async read(reference) {
      const charge = await books.findCharge(deps.db(), reference);
      // The line is as bad for this question as it was for the order before it.
      if (charge && cardOf(charge.cardReference)?.behaviour === 'lost_taken') return lose(clock);
      return stateOf(charge);
    },
    undo: (_key, reference) => books.undo(deps.db(), reference),
    ensureCustomer: async () => null,
    // The set-up's own page is in the portal; it comes back with the number as the set-up's name.
    startCardSetup: async ({ returnUrl }) => ({ url: returnUrl }),
    async finishCardSetup(number) {
      const card = testCards.find((candidate) => candidate.number === number.replaceAll(/\s/g, ''));
      if (!card) return null;
      return {
        reference: `tcard_${card.number}_${randomBytes(6).toString('hex')}`,
        brand: card.brand,
        last4: card.number.slice(-4),
        expiresMonth: 12,
        expiresYear: 2099,
      };
    },
    async forgetCard() {},
  };
}

async function lose(clock: Clock): Promise<never> {
  await clock.wait(answerMs);
  throw new Error('the test gateway did not answer in time');
}

function stateOf(charge: books.GatewayRecord | null): GatewayState {
  switch (charge?.state) {
    case 'succeeded':
      return { kind: 'succeeded' };
    case 'declined':
      return { kind: 'declined', reason: 'card_declined' };
    case 'canceled':
    case 'refunded':
      return { kind: 'canceled' };
    default:
      return { kind: 'open' };
  }
}
