// Slow: asks each operation for the things of every workspace.
/**
 * The operations of the OpenAPI document: each is asked for things of every owner, with and without a named workspace, and
 * given the fields of every answer.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { buildOpenApi, readOpenApi } from '#contracts/customer-api/index.ts';
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

/** One owner for all things of an operation, and of two things each of another owner beside an own one. */
function cellsOf(operation: Operation): Cell[] {
  const { things, version, selectsTenant } = operation;
  const alike = owners.map((owner) => things.map(() => owner));
  const mixed = owners.slice(1).flatMap(
    (other) =>
      [
        ['own', other],
        [other, 'own'],
      ] satisfies Owner[][],
  );
  const ofThings = things.length === 2 ? [...alike, ...mixed] : alike;
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

/** What the calls about nothing were answered: many cells have the same reference. */
type References = Map<string, string>;

async function answerFor(reference: RawRequest, known: References): Promise<string> {
  const key = JSON.stringify(reference);
  const answer = known.get(key) ?? comparable(await at.client.send(reference), reference.path);
  known.set(key, answer);
  return answer;
}

/** What is wrong with the answer to a cell that must reach nothing. */
async function findLeak(cell: Cell, known: References): Promise<string[]> {
  const asked = requestFor(cell);
  const answer = await at.client.send(asked);
  const expected = await answerFor(referenceOf(cell), known);
  const leaks = foreignMarks(cell, answer).map((mark) => `${nameOf(cell)} shows ${mark}`);
  if (comparable(answer, asked.path) !== expected)
    leaks.push(`${nameOf(cell)} is not as for nothing: ${answer.status} ${answer.text}`);
  return leaks;
}

test('API-4.2, API-4.3, API-2.1.4: no operation reaches a thing of another workspace, and each filters owners in its queries', async () => {
  let sums = await sumRows(at.world);
  // Reads first, together: to look at every row takes longer than an operation.
  const operations = listOperations()
    .flatMap(variantsOf)
    .toSorted((a, b) => Number(b.isSafe) - Number(a.isSafe));
  for (const [i, operation] of operations.entries()) {
    const closed = cellsOf(operation).filter((cell) => !isReached(cell));
    let filtered = 0;
    using _ = plantSql((text) => {
      if (withoutOwner(text) !== text) filtered += 1;
      return text;
    });
    const known: References = new Map();
    for (const cell of closed) assert.deepEqual(await findLeak(cell, known), []);
    assert.ok(
      operation.things.length === 0 || filtered > 0,
      `${operation.id} filters no owner in its queries`,
    );
    if (operation.isSafe && operations[i + 1]?.isSafe) continue;
    const after = await sumRows(at.world);
    assert.deepEqual(changedTables(sums, after), [], operation.isSafe ? 'the reads' : operation.id);
    sums = after;
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
    const known: References = new Map();
    let isNoticed = false;
    for (const cell of cellsOf(operation).filter((one) => !isReached(one))) {
      isNoticed = (await findLeak(cell, known)).length > 0;
      if (isNoticed) break;
    }
    assert.ok(isNoticed, operation.id);
  }
});

/** Every name that any object of the document has, with a value of its type. */
function fieldsOfDocument(): Map<string, unknown> {
  const found = new Map<string, unknown>();
  const walk = (schema: unknown) => {
    if (schema === null || typeof schema !== 'object') return;
    for (const [name, { type }] of Object.entries((schema as { properties?: object }).properties ?? {}))
      found.set(
        name,
        type === 'integer' ? 1 : type === 'boolean' ? true : type === 'array' ? [] : 'assigned',
      );
    for (const inner of Object.values(schema)) walk(inner);
  };
  walk(readOpenApi<{ components: { schemas: object } }>(buildOpenApi()).components.schemas);
  return found;
}

test('API-4.9: no field of any answer can be assigned by sending it back; each is refused by its name', async () => {
  const fields = [...fieldsOfDocument(), ['root_password', 'assigned'], ['is_admin', true]] as const;
  assert.ok(fields.length > 60);
  const sums = await sumRows(at.world);
  for (const operation of listOperations().filter((one) => one.version === 'v2' && one.hasBody)) {
    const own = operation.things.map(() => 'own' as const);
    const plain = requestOf(operation, callers[0]!.token, at.idsOf(operation, own));
    let left = fields.filter(([name]) => !operation.bodyFields.includes(name));
    // Those with a reason of their own, such as what can't be changed, are refused before or after the others.
    while (left.length > 0) {
      const body = JSON.stringify({ ...JSON.parse(plain.body!), ...Object.fromEntries(left) });
      const answer = await at.client.send({ ...plain, body });
      assert.equal(answer.status, 422, `${operation.id}: ${answer.text}`);
      const faults = JSON.parse(answer.text).error.fields as { path: string }[];
      const next = left.filter(([name]) => !faults.some(({ path }) => path === name));
      assert.ok(
        next.length < left.length,
        `${operation.id} with ${left.map(([name]) => name)}: ${answer.text}`,
      );
      left = next;
    }
  }
  assert.deepEqual(changedTables(sums, await sumRows(at.world)), []);
});
