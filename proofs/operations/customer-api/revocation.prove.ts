/** `npm run prove -- revocation`: G5 with N rounds over four processes. */
import { proveRevocation } from './prove-revocation.ts';

export const name = 'revocation';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const result = await proveRevocation({ rounds: options.n, processes: 4 });
  const planted = await proveRevocation({ rounds: 10, processes: 4, bug: 'cached verdicts' });
  options.report(`planted "cached verdicts": ${planted.lateSuccesses} late successes`);
  return {
    claim: `revoked, narrowed, removed, deactivated and expired keys succeed in no call that begins later, on any of 4 processes (${result.calls} calls)`,
    tried: result.rounds,
    failures: result.lateSuccesses,
    plantedBugsCaught: `${planted.lateSuccesses > 0 ? 1 : 0} of 1`,
  };
}
