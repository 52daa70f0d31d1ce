/** `npm run prove -- orders`: as many faulted orders as are asked for, and each planted fault (E1). */
import { crossCases, orderFaults, proveOrders } from './order-proof.ts';

export const name = 'orders';

/** Enough for each planted fault to meet every behaviour at every kill point once. */
const plantedOrders = 90;

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveOrders(crossCases(options.n), { ...options, processEvery: 7 });
  for (const fault of result.faults) options.report(`FAULT ${fault}`);
  let caught = 0;
  for (const fault of orderFaults) {
    const found = (
      await proveOrders(crossCases(plantedOrders), {
        fault,
        processEvery: 1_000,
        report: () => {},
      })
    ).faults;
    options.report(`planted "${fault}": ${found[0] ?? 'NOT NOTICED'}`);
    if (found.length > 0) caught += 1;
  }
  return {
    claim: `no order is charged twice or charged and lost (${result.kills} processes killed, ${result.cuts} cut off, ${result.bought} bought, ${result.refunded} given back)`,
    tried: result.tried,
    failures: result.faults.length,
    plantedBugsCaught: `${caught} of ${orderFaults.length}`,
  };
}
