/** `npm run prove -- late-charges`: charges that succeed after the caller got `charge_unconfirmed` (E2). */
import { lateCases, proveOrders } from './order-proof.ts';

export const name = 'late-charges';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveOrders(lateCases(options.n), { ...options, processEvery: 50 });
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  const planted = await proveOrders(lateCases(20), {
    fault: 'a late success queues',
    processEvery: 1_000,
    report: () => {},
  });
  return {
    claim: `a late success is given back once and queues nothing (${result.refunded} given back)`,
    tried: result.tried,
    failures: result.faults.length,
    plantedBugsCaught: `${planted.faults.length > 0 ? 1 : 0} of 1`,
  };
}
