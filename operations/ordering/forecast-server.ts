import type { Actor } from '#operations/accounts/index.ts';
import type { OrderingDeps } from './deps.ts';
import type { OrderForecast } from './forecast-order.ts';
import type { CreateServerInput } from './order-request.ts';
import { prepareOrder } from './prepare-order.ts';

export interface ServerForecast extends OrderForecast {
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  /** Credit that is left after a day of this server; null when it would not be made. */
  afterFirstDayQuanta: number | null;
}

/** What `createServer` would do, by the same code and the same refusals; nothing is left of it. */
export async function forecastServer(
  deps: OrderingDeps,
  actor: Actor,
  input: CreateServerInput,
): Promise<ServerForecast> {
  const { order, plan } = await prepareOrder(deps, actor, input);
  const forecast = await deps.orders.forecastOrder(order);
  const { hourlyQuanta, monthlyCapQuanta } = plan;
  const day = Math.min(24 * hourlyQuanta, monthlyCapQuanta);
  const { balanceQuanta, dueQuanta } = forecast;
  const isPlaced = balanceQuanta !== null && dueQuanta !== null;
  const afterFirstDayQuanta = isPlaced ? balanceQuanta + dueQuanta - day : null;
  return { ...forecast, hourlyQuanta, monthlyCapQuanta, afterFirstDayQuanta };
}
