// Slow: asks each operation as fifteen callers in every way, and takes the filters out of each.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import {
  listOperations,
  type Operation,
  variantsOf,
} from '#operations/surfaces/customer-api/testing/operations.ts';
import { withoutOwner, withoutReach } from '#operations/testing/planted-sql.ts';
import { type Cell, matrixOf, pairsOf, selections } from './isolation-cells.ts';
import { createIsolationWorld, type IsolationWorld, runCells, runPlanted } from './isolation-run.ts';

let at: IsolationWorld;
before(async () => {
  at = await createIsolationWorld();
});
after(() => at[Symbol.asyncDispose]());

/**
 * Of every operation and owner one way of naming the workspace, by every second caller; over the operations each way and
 * each caller comes up, and what is a caller's own is asked by all. Version 1 has the handlers of version 2, so a third of
 * its cells do; the proof runs all.
 */
function sampleOf(operation: Operation, index: number): Cell[] {
  const sample = matrixOf(operation, at.callers)
    .filter(
      (_, cell) =>
        cell % selections.length === (Math.floor(cell / selections.length) + index) % selections.length,
    )
    .filter(({ caller, tenantOf }) => tenantOf === 'own' || (at.callers.indexOf(caller) + index) % 2 === 0);
  return operation.version === 'v1' ? sample.filter((_, place) => (place + index) % 3 === 0) : sample;
}

test('API-4.2, API-4.3, API-2.1.4: no operation reaches a resource of another workspace, for any caller', async () => {
  const operations = listOperations();
  assert.ok(operations.length >= 15);
  let [cells, succeeded] = [0, 0];
  const leaks: string[] = [];
  for (const [index, operation] of operations.entries()) {
    const result = await runCells(at, sampleOf(operation, index));
    cells += result.cells;
    succeeded += result.succeeded;
    leaks.push(...result.leaks);
    assert.ok(result.succeeded > 0 || operation.version === 'v1', `${operation.id}: no caller got a success`);
  }
  assert.deepEqual(leaks, []);
  assert.ok(cells >= operations.length * at.callers.length);
  assert.ok(succeeded > operations.length);
});

test('API-4.3: naming two things of different owners reaches neither', async () => {
  for (const operation of listOperations()
    .filter((one) => one.version === 'v2')
    .flatMap(variantsOf)) {
    const result = await runCells(at, pairsOf(operation, at.callers));
    assert.deepEqual(result.leaks, []);
  }
});

function isAboutWorkspace(operation: Operation): boolean {
  return operation.version === 'v1' || operation.selectsTenant;
}

test('API-4.2: the matrix sees it when any operation forgets whose the things are that it reads', async () => {
  // Version 1 has the same handlers; the proof runs both.
  for (const operation of listOperations().filter((one) => one.version === 'v2')) {
    const unfiltered = await runPlanted(at, operation, withoutOwner);
    // What names nothing and only adds something to a workspace has no filter but the key's reach.
    if (operation.things.length > 0 || (operation.isSafe && isAboutWorkspace(operation))) {
      assert.ok(unfiltered.changed > 0, `${operation.id} filters no owner in its queries`);
      assert.ok(unfiltered.leaks > 0, `${operation.id} without its filter is not seen`);
    }
    const unbound = await runPlanted(at, operation, withoutReach);
    assert.ok(
      unbound.changed > 0 && unbound.leaks > 0,
      `${operation.id} for keys that reach everything is not seen`,
    );
  }
});
