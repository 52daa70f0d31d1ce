/** `npm run prove -- credentials`: G3 and G4 with N tokens and N spellings each. */
import { proveRoundTrips, proveSpellings } from './prove-tokens.ts';

export const name = 'credentials';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const trips = proveRoundTrips(options.n);
  const spellings = proveSpellings(options.n);
  const share = ((100 * trips.naiveFailures) / options.n).toFixed(1);
  options.report(`a plain split breaks ${share} % of the tokens`);
  options.report(`comparing decoded bytes would accept ${spellings.decodedAccepted} other spellings`);
  const caught = [trips.naiveFailures > 0.4 * options.n, spellings.decodedAccepted > 0];
  return {
    claim: `${trips.tried} tokens come apart as they were made; of ${spellings.tried} other spellings of valid keys none is accepted`,
    tried: trips.tried + spellings.tried,
    failures: trips.failures + spellings.accepted,
    plantedBugsCaught: `${caught.filter(Boolean).length} of 2`,
  };
}
