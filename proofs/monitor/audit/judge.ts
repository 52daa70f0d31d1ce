/** Checks every route of the monitor that can change data for its audit entry. */
import { cases, exceptions, otherCases } from './cases.ts';
import type { Stage } from './stage.ts';

async function judgeRoute(stage: Stage, route: string): Promise<string[]> {
  const [operation, send] = cases[route]!;
  const answer = await send(stage);
  if (answer.status >= 400) return [`${route}: refused with ${answer.status}: ${answer.text.slice(0, 300)}`];
  const { rows } = await stage.server.database.pool.query<{
    operation: string;
    actor_kind: string;
    actor_id: string | null;
    actor_name: string | null;
    source_address: string | null;
  }>(
    'select operation, actor_kind, actor_id, actor_name, source_address from audit_entries where request_id = $1',
    [answer.headers.get('x-request-id')],
  );
  const found = rows.find((row) => row.operation === operation);
  if (!found) return [`${route}: no entry ${operation}; there are: ${rows.map((row) => row.operation)}`];
  const kind = route.includes('/agent/') ? 'sensor' : 'operator';
  const isWhole =
    found.actor_kind === kind && found.actor_id && found.actor_name && found.source_address === '127.0.0.1';
  return isWhole ? [] : [`${route}: ${operation} does not say who and from where: ${JSON.stringify(found)}`];
}

/** The same for a change without a route. */
async function judgeOther(stage: Stage, what: string): Promise<string[]> {
  const [operation, change] = otherCases[what]!;
  const { pool } = stage.server.database;
  const { rows: before } = await pool.query('select coalesce(max(id), 0) as id from audit_entries');
  await change(stage);
  const { rows } = await pool.query('select operation from audit_entries where id > $1', [before[0].id]);
  return rows.some((row) => row.operation === operation) ? [] : [`${what}: no entry ${operation}`];
}

/** Errors in the audit entry of a route or another change. */
export function judgeOne(stage: Stage, thing: string): Promise<string[]> {
  return thing in otherCases ? judgeOther(stage, thing) : judgeRoute(stage, thing);
}

/** Routes of the running server that can change data. */
function listMutatingRoutes(stage: Stage): string[] {
  const isSafe = (method: string) => ['GET', 'HEAD', 'OPTIONS'].includes(method);
  const all = stage.server.routes.filter(({ method }) => !isSafe(method));
  return [...new Set(all.map(({ method, url }) => `${method} ${url}`))];
}

/** Everything that must leave an entry: routes with a case, and other changes. */
export function listThings(stage: Stage): string[] {
  const routes = listMutatingRoutes(stage).filter((route) => route in cases && !(route in exceptions));
  return [...Object.keys(otherCases), ...routes];
}

/** All errors: routes without a case, cases without a route, and routes without an entry. */
export async function judgeAll(stage: Stage): Promise<{ routes: number; faults: string[] }> {
  const routes = listMutatingRoutes(stage);
  const faults: string[] = [];
  for (const thing of listThings(stage))
    faults.push(...(await judgeOne(stage, thing).catch((error) => [`${thing}: ${String(error)}`])));
  for (const route of routes)
    if (!(route in cases) && !(route in exceptions))
      faults.push(`${route}: has no case that says what it leaves in the audit trail`);
  for (const route of [...Object.keys(cases), ...Object.keys(exceptions)])
    if (!routes.includes(route)) faults.push(`${route}: there is no such route`);
  return { routes: routes.length, faults };
}
