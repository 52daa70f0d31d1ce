// Slow: asks each operation for the things of every workspace.
/** The operations of the OpenAPI document: each is asked for things of every owner, with and without a named workspace. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { plantSql, withoutOwner } from '#operations/testing/planted-sql.ts';
import {
  createIsolationWorld,
  type IsolationWorld,
  markOf,
  type Owner,
  requestOf,
  type Workspace,
  workspaces,
} from './testing/isolation-world.ts';
import { listOperations, type Operation, variantsOf } from './testing/operations.ts';
import { comparable, type RawAnswer, type RawRequest } from './testing/raw-client.ts';
import { changedTables, sumRows } from './testing/row-sums.ts';

let at: IsolationWorld;
let callers: readonly { token: string; reaches: readonly Workspace[] }[];
before(async () => {
  at = await createIsolationWorld();
  callers = [
    { token: await at.createKey(), reaches: ['own', 'sibling'] },
    { token: await at.createKey('own'), reaches: ['own'] },
    { token: await at.createKey('sibling'), reaches: ['sibling'] },
  ];
});
after(() => at[Symbol.asyncDispose]());

const owners: readonly Owner[] = [...workspaces, 'deleted'];
const missingTenant = 424_242;

interface Cell {
  operation: Operation;
  caller: (typeof callers)[number];
  /** Of each thing. */
  owners: readonly Owner[];
  /** Named in the query. */
  named: Workspace | null;
  /** On which the call acts; null: the named one is not the caller's. */
  workspace: Workspace | null;
}

/** One owner for all things of an operation, and every two owners of two things. */
function cellsOf(operation: Operation): Cell[] {
  const { things, version, selectsTenant } = operation;
  const mixed = owners.flatMap((one) => owners.map((two) => [one, two]));
  const ofThings = things.length === 2 ? mixed : owners.map((owner) => things.map(() => owner));
  const named = version === 'v2' && selectsTenant ? [null, ...workspaces] : [null];
  return callers.flatMap((caller) =>
    (things.length === 0 ? [[]] : ofThings).flatMap((of) =>
      named.map((workspace) => ({
        ...{ operation, caller, owners: of, named: workspace },
        workspace:
          workspace === null ? caller.reaches[0]! : caller.reaches.includes(workspace) ? workspace : null,
      })),
    ),
  );
}

const isReached = ({ owners: of, workspace }: Cell) =>
  workspace !== null && of.every((owner) => owner === workspace);

function requestFor({ operation, caller, owners: of, named }: Cell): RawRequest {
  const tenant = named === null ? null : at.tenants[named].id;
  return requestOf(operation, caller.token, at.idsOf(operation, of), tenant);
}

/** The same request for what never existed. */
function referenceOf({ operation, caller, owners: of, named, workspace }: Cell): RawRequest {
  const veiled = of.map((owner) => (owner === workspace ? owner : 'nonexistent'));
  const tenant = named === null ? null : workspace === null ? missingTenant : at.tenants[named].id;
  return requestOf(operation, caller.token, at.idsOf(operation, veiled), tenant);
}

const nameOf = ({ operation: { method, path }, owners: of, named, caller }: Cell) =>
  `${method} ${path} of ${of.join(' and ')} in ${named} by a key of ${caller.reaches.join(' and ')}`;

/** Marks, names and ids of workspaces that an answer is not about. */
function foreignMarks({ operation, caller, workspace }: Cell, { text }: RawAnswer): string[] {
  const isAboutOne = operation.version === 'v1' || operation.selectsTenant;
  const visible = isAboutOne ? [workspace] : caller.reaches;
  const strangers = workspaces.filter((one) => !visible.includes(one)).map((one) => at.tenants[one]);
  const ids = [...text.matchAll(/"tenants?(?:_id)?":\[?(\d+(?:,\d+)*)/g)].flatMap((match) =>
    match[1]!.split(','),
  );
  return strangers.flatMap((one) =>
    [markOf(one), `"${one.slug}"`]
      .filter((mark) => text.includes(mark))
      .concat(ids.includes(String(one.id)) ? [one.slug] : []),
  );
}

/** What is wrong with the answer to a cell that must reach nothing. */
async function findLeak(cell: Cell): Promise<string[]> {
  const [asked, reference] = [requestFor(cell), referenceOf(cell)];
  const answer = await at.client.send(asked);
  const expected = comparable(await at.client.send(reference), reference.path);
  const leaks = foreignMarks(cell, answer).map((mark) => `${nameOf(cell)} shows ${mark}`);
  if (comparable(answer, asked.path) !== expected)
    leaks.push(`${nameOf(cell)} is not as for nothing: ${answer.status} ${answer.text}`);
  return leaks;
}

test('API-4.2, API-4.3, API-2.1.4: no operation reaches a thing of another workspace, and each filters owners in its queries', async () => {
  for (const operation of listOperations().flatMap(variantsOf)) {
    const closed = cellsOf(operation).filter((cell) => !isReached(cell));
    let filtered = 0;
    using _ = plantSql((text) => {
      if (withoutOwner(text) !== text) filtered += 1;
      return text;
    });
    const sums = await sumRows(at.world);
    for (const cell of closed) assert.deepEqual(await findLeak(cell), []);
    assert.deepEqual(changedTables(sums, await sumRows(at.world)), [], operation.id);
    assert.ok(
      operation.things.length === 0 || filtered > 0,
      `${operation.id} filters no owner in its queries`,
    );
  }
});

test('API-4.2: what an operation reads is of its workspace alone', async () => {
  let reached = 0;
  for (const operation of listOperations()
    .filter(({ isSafe }) => isSafe)
    .flatMap(variantsOf))
    for (const cell of cellsOf(operation).filter(isReached)) {
      const answer = await at.client.send(requestFor(cell));
      assert.ok(answer.status < 400, `${nameOf(cell)}: ${answer.status} ${answer.text}`);
      assert.deepEqual(foreignMarks(cell, answer), [], nameOf(cell));
      reached += 1;
    }
  assert.ok(reached > 100, `${reached} cells`);
});

test('API-4.2: an operation that forgets whose the things are that it reads is noticed', async () => {
  for (const operation of listOperations().filter(({ isSafe, things }) => isSafe && things.length > 0)) {
    using _ = plantSql(withoutOwner);
    const leaks: string[] = [];
    for (const cell of cellsOf(operation).filter((one) => !isReached(one)))
      leaks.push(...(await findLeak(cell)));
    assert.notDeepEqual(leaks, [], operation.id);
  }
});
