/** `npm run prove -- cost`: what a call reads with 10 keys and with N. */
import { costOfCall } from './prove-cost.ts';

export const name = 'cost';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  const [few, many] = [await costOfCall(10), await costOfCall(options.n)];
  const pages = (costs: typeof few) => costs.reduce((sum, cost) => sum + cost.pages, 0);
  for (const [index, cost] of many.entries()) {
    const scanned = cost.scanned.length === 0 ? '' : `; reads all of ${cost.scanned.join(', ')}`;
    options.report(`${cost.statement}: ${few[index]?.pages} pages, then ${cost.pages}${scanned}`);
  }
  const isFlat = pages(many) < pages(few) * 1.5 + 20;
  return {
    claim: `the ${many.length} statements of a metered call read ${pages(few)} pages with 10 keys, ${pages(many)} with N`,
    tried: options.n,
    failures: isFlat ? 0 : 1,
    plantedBugsCaught: 'none planted',
  };
}
