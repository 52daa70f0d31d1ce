/** `npm run prove -- orders`: as many orders as are asked for, with a gateway that lets one down and processes that die. */
import { crossCases, proveOrders } from './order-proof.ts';

export const name = 'orders';

/** Enough for the planted fault to meet every behaviour at every kill point once. */
const plantedOrders = 90;

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveOrders(crossCases(options.n), { ...options, processEvery: 7 });
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  const planted = await proveOrders(crossCases(plantedOrders), {
    ...{ paysTwice: true, processEvery: 1_000, report: () => {} },
  });
  return {
    claim: `no order is charged twice or charged and lost (${result.kills} processes killed, ${result.cuts} cut off, ${result.bought} bought, ${result.refunded} given back)`,
    tried: result.tried,
    failures: result.faults.length,
    plantedBugsCaught: `${planted.faults.length > 0 ? 1 : 0} of 1`,
  };
}
