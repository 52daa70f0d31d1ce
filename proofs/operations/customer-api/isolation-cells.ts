/**
 * The cells of the isolation matrix: which request a caller sends, and whether the specification lets it through.
 *
 * Operation × caller × owner of what is named × way of naming the workspace. The model here is a second opinion on who may
 * do what; it shares nothing with the gate that it judges.
 */
import type { Tenant } from '#operations/accounts/index.ts';
import {
  type NamedThing,
  type Operation,
  variantsOf,
} from '#operations/surfaces/customer-api/testing/operations.ts';
import type { RawRequest } from '#operations/surfaces/customer-api/testing/raw-client.ts';
import type { Caller, Owners } from './principals.ts';
import type { ThingId, Things } from './things.ts';

export const ownerKinds = ['own', 'sibling', 'other', 'nonexistent', 'deleted'] as const;
export type OwnerKind = (typeof ownerKinds)[number];
export const selections = ['none', 'query', 'json', 'header', 'two that differ'] as const;
export type Selection = (typeof selections)[number];

export interface Cell {
  operation: Operation;
  caller: Caller;
  /** Whose each of the operation's things is, in their order. */
  owners: readonly OwnerKind[];
  /** Whose workspace is named, where one is. */
  tenantOf: OwnerKind;
  selection: Selection;
}

export type Verdict =
  /** Everything named is the caller's: it reaches the endpoint. */
  | 'allowed'
  /** Refused before the endpoint, for every named resource. */
  | 'refused'
  /** To be answered as if what was named did not exist. */
  | 'as nonexistent';

/** Every caller, every owner, every way of naming the workspace; one owner for all that an operation names (H1). */
export function matrixOf(operation: Operation, callers: readonly Caller[]): Cell[] {
  return variantsOf(operation).flatMap((variant) =>
    callers.flatMap((caller) =>
      ownerKinds.flatMap((owner) =>
        selections.map(
          (selection): Cell => ({
            operation: variant,
            caller,
            owners: variant.things.map(() => owner),
            tenantOf: owner,
            selection,
          }),
        ),
      ),
    ),
  );
}

/** Every pair of owners of the two things that an operation names (H2). */
export function pairsOf(operation: Operation, callers: readonly Caller[]): Cell[] {
  if (operation.things.length < 2) return [];
  return callers
    .filter((caller) => caller.isKnown)
    .flatMap((caller) =>
      ownerKinds.flatMap((first) =>
        ownerKinds.flatMap((second) =>
          (['none', 'query'] as const).map((selection): Cell => {
            const owners = operation.things.map((_, index) => (index === 0 ? first : second));
            return { operation, caller, owners, tenantOf: first, selection };
          }),
        ),
      ),
    );
}

/** Two workspaces that do not exist. */
const missingTenants = ['424242', '424243'] as const;

/** The workspaces that a cell names, by place. A foreign owner's is named too: that is the attack. */
function namedTenants(cell: Cell, owners: Owners): { query?: string; json?: string; header?: string } {
  const whose = cell.tenantOf === 'deleted' ? 'own' : cell.tenantOf;
  const tenant = whose === 'nonexistent' ? null : owners[whose];
  const named = tenant === null ? missingTenants[0] : String(tenant.id);
  const another = String((tenant?.id === owners.own.id ? owners.sibling : owners.own).id);
  switch (cell.selection) {
    case 'none':
      return {};
    case 'query':
      return { query: named };
    case 'json':
      return { json: named };
    case 'header':
      return { header: named };
    case 'two that differ':
      return { query: named, header: another };
  }
}

/** The workspace on which the call acts by the specification; null where the selection itself is refused. */
export function effectiveTenant(cell: Cell, owners: Owners): Tenant | null {
  const fallback = cell.caller.tenants[0] ?? null;
  const { operation } = cell;
  if (operation.version === 'v1' || !operation.selectsTenant) return fallback;
  const named = namedTenants(cell, owners);
  // A body of a GET is never read.
  const seen = [named.query, operation.hasBody ? named.json : undefined, named.header].filter(
    (one) => one !== undefined,
  );
  if (seen.length === 0) return fallback;
  if (new Set(seen).size > 1) return null;
  return cell.caller.tenants.find((tenant) => String(tenant.id) === seen[0]) ?? null;
}

/** True for a thing that this cell's caller may reach with this selection. */
function isReached(owner: OwnerKind, tenant: Tenant, owners: Owners): boolean {
  return owner !== 'nonexistent' && owner !== 'deleted' && owners[owner].id === tenant.id;
}

export function judge(cell: Cell, owners: Owners): Verdict {
  const { caller, operation } = cell;
  if (!caller.isKnown || caller.isLocked || (!operation.isSafe && !caller.canWrite)) return 'refused';
  const tenant = effectiveTenant(cell, owners);
  if (tenant === null) return 'as nonexistent';
  return cell.owners.every((owner) => isReached(owner, tenant, owners)) ? 'allowed' : 'as nonexistent';
}

/** The request of a cell, with the things that it names. */
export function requestOf(cell: Cell, owners: Owners, ids: readonly ThingId[]): RawRequest {
  return buildRequest(cell, ids, namedTenants(cell, owners));
}

/** Ids of what a cell names. */
export async function idsOf(cell: Cell, owners: Owners, things: Things): Promise<ThingId[]> {
  const ids: ThingId[] = [];
  for (const [index, thing] of cell.operation.things.entries())
    ids.push(await idOf(thing, cell.owners[index]!, owners, things));
  const whose = cell.owners[0];
  const isOnes = whose !== undefined && cell.owners.every((owner) => owner === whose);
  if (isOnes && whose !== 'nonexistent' && whose !== 'deleted')
    await things.tie(cell.operation, ids, owners[whose]);
  return ids;
}

/** The same request with nothing that exists in the place of what the caller may not reach: its answer is the measure. */
export function referenceOf(cell: Cell, owners: Owners, ids: readonly ThingId[], things: Things): RawRequest {
  const tenant = effectiveTenant(cell, owners);
  const named = namedTenants(cell, owners);
  const reachable = new Set(cell.caller.tenants.map((one) => String(one.id)));
  const veil = (name: string | undefined, stranger: string) =>
    name === undefined || reachable.has(name) ? name : stranger;
  const veiled = {
    query: veil(named.query, missingTenants[0]),
    json: veil(named.json, missingTenants[0]),
    header: veil(named.header, cell.selection === 'two that differ' ? missingTenants[1] : missingTenants[0]),
  };
  const veiledIds = cell.operation.things.map((thing, index) =>
    tenant !== null && isReached(cell.owners[index]!, tenant, owners)
      ? ids[index]!
      : things.never(thing.resource),
  );
  return buildRequest(cell, veiledIds, veiled);
}

async function idOf(thing: NamedThing, owner: OwnerKind, owners: Owners, things: Things): Promise<ThingId> {
  if (owner === 'nonexistent') return things.never(thing.resource);
  if (owner === 'deleted') return things.gone(thing.resource, owners.own);
  return things.get(thing.resource, owners[owner]);
}

function buildRequest(
  cell: Cell,
  ids: readonly ThingId[],
  named: { query?: string | undefined; json?: string | undefined; header?: string | undefined },
): RawRequest {
  const { operation, caller } = cell;
  let path = operation.path;
  const query = new URLSearchParams(operation.sampleQuery);
  const body: Record<string, unknown> = { ...operation.sampleBody };
  for (const [index, thing] of operation.things.entries()) {
    if (thing.in === 'path') path = path.replace(`{${thing.name}}`, String(ids[index]));
    else if (thing.in === 'query') query.set(thing.name, String(ids[index]));
    else body[thing.name] = ids[index];
  }
  if (named.query !== undefined) query.set('tenant', named.query);
  if (named.json !== undefined) body.tenant = Number(named.json);
  const hasBody = operation.hasBody || named.json !== undefined;
  const headers: [string, string][] = [
    ...caller.headers.map(([name, value]): [string, string] => [name, value]),
    ...(named.header === undefined ? [] : [['x-tenant-id', named.header] as [string, string]]),
    ...(hasBody ? [['content-type', 'application/json'] as [string, string]] : []),
  ];
  const search = query.size === 0 ? '' : `?${query}`;
  return {
    method: operation.method,
    path: `${path}${search}`,
    headers,
    body: hasBody ? JSON.stringify(body) : undefined,
  };
}
