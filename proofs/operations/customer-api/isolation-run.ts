/**
 * Runs cells of the isolation matrix and says which leak.
 *
 * A leak is, on what the caller may not reach: an answer that differs from that for something nonexistent, a changed row,
 * or the mark of another workspace's thing in any answer. A cell that the specification lets through and that is turned
 * away is a fault as well: a server that refuses every caller would leak nothing.
 */

import { systemActor } from '#operations/accounts/index.ts';
import { ensurePool } from '#operations/addresses/index.ts';
import { listOperations, type Operation } from '#operations/surfaces/customer-api/testing/operations.ts';
import {
  comparable,
  createRawClient,
  type RawAnswer,
  type RawClient,
  type RawRequest,
} from '#operations/surfaces/customer-api/testing/raw-client.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { plantSql } from '#operations/testing/planted-sql.ts';
import {
  type Cell,
  effectiveTenant,
  idsOf,
  judge,
  matrixOf,
  referenceOf,
  requestOf,
} from './isolation-cells.ts';
import { type Caller, createCallers, createOwners, type Owners } from './principals.ts';
import { changedTables, sumRows } from './row-sums.ts';
import { createThings, isMembership, markOf, type ThingId, type Things } from './things.ts';

export interface IsolationWorld extends AsyncDisposable {
  world: World;
  owners: Owners;
  callers: readonly Caller[];
  things: Things;
  client: RawClient;
}

export interface CellsResult {
  cells: number;
  leaks: string[];
  /** Cells that reached their endpoint, and those of them that were answered with success. */
  allowed: number;
  succeeded: number;
}

/** A world with room for what the matrix makes. */
export async function createIsolationWorld(): Promise<IsolationWorld> {
  const world = await createWorld({
    deploysPerHour: 1_000_000,
    authFailuresMax: 10_000_000,
    adminAuthFailuresMax: 10_000_000,
    networksMax: 60_000,
  });
  await ensurePool(world.database.db, {
    clusterId: world.clusterId,
    prefix: '198.18.0.0/15',
    gateway: '198.18.0.1',
    firstAddress: '198.18.0.10',
    lastAddress: '198.19.255.250',
  });
  const client = createRawClient(world.url);
  const owners = await createOwners(world);
  const callers = await createCallers(world, owners);
  const keys = new Map<number, string>();
  for (const [tenant, owner] of [
    [owners.own, owners.people.own],
    [owners.sibling, owners.people.own],
    [owners.other, owners.people.other],
  ] as const) {
    const issued = await world.apiKeys.issueKey(systemActor, {
      organizationId: tenant.organizationId,
      personId: owner.id,
      name: `${markOf(tenant)}key`,
      scope: 'full',
      tenantIds: [tenant.id],
    });
    keys.set(tenant.id, issued.token);
    // Each workspace has usage of its own, by a key that bears its mark.
    await client.send({
      method: 'GET',
      path: '/api/v2/servers',
      headers: [['authorization', `Bearer ${issued.token}`]],
    });
  }
  const things = createThings(world, client, keys);
  // Every workspace has one of everything, so that a list without its filter has something to show.
  for (const resource of new Set(
    listOperations().flatMap((one) => one.things.map((thing) => thing.resource)),
  ))
    for (const tenant of [owners.own, owners.sibling, owners.other]) await things.get(resource, tenant);
  return {
    world,
    owners,
    callers,
    things,
    client,
    async [Symbol.asyncDispose]() {
      client[Symbol.dispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}

/**
 * Whether the matrix sees it when an operation forgets whose things are. `changed` counts the statements in which the
 * filter stood: an operation that names things and has none does not filter where it reads.
 */
export async function runPlanted(
  at: IsolationWorld,
  operation: Operation,
  rewrite: (text: string) => string,
): Promise<{ changed: number; leaks: number }> {
  // Where no workspace can be named, too wide a reach shows in whose workspace is the default: the older one's is.
  const names =
    isAboutOne(operation) && operation.version === 'v2' ? ['own full'] : ['own full', 'other organization'];
  const callers = at.callers.filter(({ name }) => names.includes(name));
  const cells = matrixOf(operation, callers).filter(
    ({ selection, tenantOf }) =>
      ['none', 'query'].includes(selection) && ['sibling', 'other'].includes(tenantOf),
  );
  for (const cell of cells) await idsOf(cell, at.owners, at.things);
  using planted = plantSql(rewrite);
  const { leaks } = await runCells(at, cells);
  const { changed } = planted;
  // What the forgotten filter let happen to them is not for the next operation.
  for (const thing of operation.isSafe ? [] : operation.things)
    for (const tenant of [at.owners.own, at.owners.sibling, at.owners.other])
      at.things.useUp(thing.resource, tenant);
  return { changed, leaks: leaks.length };
}

export async function runCells(at: IsolationWorld, cells: readonly Cell[]): Promise<CellsResult> {
  const result: CellsResult = { cells: cells.length, leaks: [], allowed: 0, succeeded: 0 };
  const closed = cells.filter((cell) => judge(cell, at.owners) !== 'allowed');
  const open = cells.filter((cell) => judge(cell, at.owners) === 'allowed');
  result.leaks.push(...(await runClosed(at, closed)));
  for (const cell of open) {
    const answer = await runOpen(at, cell, result.leaks);
    result.allowed += 1;
    if (answer.status < 400) result.succeeded += 1;
  }
  return result;
}

/** Cells that must be answered as if nothing existed. None changes a row, so they run side by side. */
async function runClosed(at: IsolationWorld, cells: readonly Cell[]): Promise<string[]> {
  const prepared: { cell: Cell; wanted: RawRequest; reference: RawRequest }[] = [];
  for (const cell of cells) {
    const ids = await idsOf(cell, at.owners, at.things);
    const reference = referenceOf(cell, at.owners, ids, at.things);
    prepared.push({ cell, wanted: requestOf(cell, at.owners, ids), reference });
  }
  const before = await sumRows(at.world);
  const references = new Map<string, Promise<string>>();
  const leaks: string[] = [];
  await inParallel(prepared, async ({ cell, wanted, reference }) => {
    const key = JSON.stringify(reference);
    const measure =
      references.get(key) ?? at.client.send(reference).then((answer) => comparable(answer, reference.path));
    references.set(key, measure);
    const answer = await at.client.send(wanted);
    const said = comparable(answer, wanted.path);
    if (said !== (await measure))
      leaks.push(`${nameOf(cell)} is not as for nothing:\n${said}\n--\n${await measure}`);
    else if (answer.status < 400 && cell.operation.things.some((thing) => thing.in !== 'query'))
      leaks.push(`${nameOf(cell)} is a ${answer.status}`);
    for (const mark of foreignMarks(at, cell, answer)) leaks.push(`${nameOf(cell)} shows ${mark}`);
  });
  const changed = changedTables(before, await sumRows(at.world));
  if (changed.length > 0)
    leaks.push(`${cells[0]?.operation.id}: a call that must change nothing changed ${changed.join(', ')}`);
  return leaks;
}

async function runOpen(at: IsolationWorld, cell: Cell, leaks: string[]): Promise<RawAnswer> {
  const ids = await idsOf(cell, at.owners, at.things);
  const answer = await at.client.send(requestOf(cell, at.owners, ids));
  if ([401, 403, 404].includes(answer.status) || answer.status >= 500)
    leaks.push(`${nameOf(cell)} was turned away: ${answer.status} ${answer.text.slice(0, 200)}`);
  for (const mark of foreignMarks(at, cell, answer)) leaks.push(`${nameOf(cell)} shows ${mark}`);
  if (!cell.operation.isSafe) await at.world.jobs.drain();
  if (cell.operation.method === 'DELETE') forget(at, cell, ids);
  return answer;
}

/** What a cell has deleted, or found that it could not be, is no thing for the next one. */
function forget(at: IsolationWorld, cell: Cell, ids: readonly ThingId[]): void {
  if (isMembership(cell.operation)) {
    at.things.untie(ids);
    return;
  }
  for (const [index, thing] of cell.operation.things.entries()) {
    const owner = cell.owners[index]!;
    if (owner !== 'nonexistent' && owner !== 'deleted') at.things.useUp(thing.resource, at.owners[owner]);
  }
}

/** False for what is about a key and all that it reaches. */
function isAboutOne(operation: Operation): boolean {
  return operation.selectsTenant || operation.version === 'v1';
}

/** What an answer shows of workspaces that it is not about: marks of their things, their names, their ids. */
function foreignMarks(at: IsolationWorld, cell: Cell, answer: RawAnswer): string[] {
  const { operation, caller } = cell;
  const visible = (isAboutOne(operation) ? [effectiveTenant(cell, at.owners)] : caller.tenants).map(
    (one) => one?.id,
  );
  const strangers = [at.owners.own, at.owners.sibling, at.owners.other].filter(
    (one) => !visible.includes(one.id),
  );
  const marks = strangers
    .flatMap((one) => [markOf(one), `"${one.slug}"`])
    .filter((mark) => answer.text.includes(mark));
  const ids = [...answer.text.matchAll(/"tenants?(?:_id)?":\[?(\d+(?:,\d+)*)/g)].flatMap((match) =>
    match[1]!.split(','),
  );
  return [...marks, ...ids.filter((id) => !visible.includes(Number(id))).map((id) => `workspace ${id}`)];
}

function nameOf(cell: Cell): string {
  const owners = cell.operation.things.length === 0 ? cell.tenantOf : cell.owners.join(' and ');
  const { method, path } = cell.operation;
  return `${method} ${path} by ${cell.caller.name}, ${owners}, workspace: ${cell.selection}`;
}

async function inParallel<T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  width = 16,
): Promise<void> {
  const queue = items.values();
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (const item of queue) await work(item);
    }),
  );
}
