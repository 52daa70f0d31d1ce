import { CodedError } from '#common/errors/index.ts';
import type { AccessRefusal } from '#operations/billing/index.ts';
import type { OrdersDeps } from './orders-deps.ts';
import { commitOrder, type NewOrder } from './place-order.ts';

export interface OrderForecast {
  /** Why the order would be refused, in the words of the real call; null when it would be placed. */
  reason: string | null;
  /** Whether the account may deploy this plan at all. */
  isEligible: boolean;
  /** What the card would be charged; it becomes credit. Null when the order would be refused. */
  dueQuanta: number | null;
  balanceQuanta: number | null;
}

/** Carries the rehearsed order out of the transaction that it undoes. */
class Rehearsed extends Error {
  readonly committed: Awaited<ReturnType<typeof commitOrder>>;
  constructor(committed: Rehearsed['committed']) {
    super('rehearsed');
    this.committed = committed;
  }
}

/** Places the order by the same code and undoes it: no row, no deploy slot and no charge is left. */
export async function forecastOrder(deps: OrdersDeps, order: NewOrder): Promise<OrderForecast> {
  try {
    return await deps.takeTurn(order.tenantId, () =>
      deps
        .db()
        .transaction()
        .execute(async (tx) => {
          throw new Rehearsed(await commitOrder(deps, tx, order));
        }),
    );
  } catch (error) {
    if (error instanceof Rehearsed) {
      const { next, balanceQuanta } = error.committed;
      const dueQuanta = 'charge' in next ? next.charge.amountQuanta : 0;
      return { reason: null, isEligible: true, dueQuanta, balanceQuanta };
    }
    const reason = reasonOf(error);
    if (reason === null) throw error;
    const isEligible = (error as CodedError).code !== 'orders.not_eligible';
    return { reason, isEligible, dueQuanta: null, balanceQuanta: null };
  }
}

function reasonOf(error: unknown): string | null {
  if (!(error instanceof CodedError)) return null;
  if (error.code === 'orders.not_eligible') return (error.details.refusal as AccessRefusal).reason;
  if (error.code === 'orders.deploy_rate') return 'deploy_rate';
  return error.code === 'servers.capacity' ? 'capacity_unavailable' : null;
}
