/**
 * `npm run prove -- isolation`: the whole isolation matrix, every pair of owners, and the removal of each operation's
 * ownership filter. `--n` bounds the cells of one operation; 1000 is all of them.
 */

import { listOperations, variantsOf } from '#operations/surfaces/customer-api/testing/operations.ts';
import { withoutOwner, withoutReach } from '#operations/testing/planted-sql.ts';
import { matrixOf, pairsOf } from './isolation-cells.ts';
import { createIsolationWorld, runCells, runPlanted } from './isolation-run.ts';
import { createRandom } from './random.ts';

export const name = 'isolation';

export async function prove(options: { n: number; seed: number; report: (line: string) => void }) {
  await using at = await createIsolationWorld();
  const random = createRandom(options.seed);
  const operations = listOperations();
  const leaks: string[] = [];
  const total = { cells: 0, pairs: 0, allowed: 0, succeeded: 0 };
  for (const operation of operations) {
    const cells = random.shuffle(matrixOf(operation, at.callers)).slice(0, options.n);
    const pairs = random
      .shuffle(variantsOf(operation).flatMap((variant) => pairsOf(variant, at.callers)))
      .slice(0, options.n);
    const results = [await runCells(at, cells), await runCells(at, pairs)];
    for (const result of results) {
      leaks.push(...result.leaks);
      total.allowed += result.allowed;
      total.succeeded += result.succeeded;
    }
    total.cells += cells.length;
    total.pairs += pairs.length;
    options.report(
      `${operation.id}: ${cells.length} cells, ${pairs.length} pairs, ${leaks.length} leaks so far`,
    );
  }
  for (const leak of leaks.slice(0, 20)) options.report(`LEAK ${leak}`);
  const planted = { caught: 0, of: 0 };
  for (const operation of operations) {
    const isRead = operation.isSafe && (operation.version === 'v1' || operation.selectsTenant);
    const rewrites = operation.things.length > 0 || isRead ? [withoutOwner, withoutReach] : [withoutReach];
    for (const rewrite of rewrites) {
      planted.of += 1;
      const { changed, leaks: seen } = await runPlanted(at, operation, rewrite);
      if (changed > 0 && seen > 0) planted.caught += 1;
      else options.report(`NOT CAUGHT ${operation.id} ${rewrite.name}`);
    }
  }
  return {
    claim: `${operations.length} operations: ${total.cells} cells and ${total.pairs} pairs of owners, ${total.allowed} allowed (${total.succeeded} with success), none leaks`,
    tried: total.cells + total.pairs,
    failures: leaks.length,
    plantedBugsCaught: `${planted.caught} of ${planted.of} filters`,
  };
}
