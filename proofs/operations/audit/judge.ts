/** Judges every route that can change something by what it left in the audit trail. */

import type { Case } from './case.ts';
import { cases, exceptions, otherCases } from './cases.ts';
import type { Stage } from './stage.ts';

/** Routes of the running server, by the server's own list, that can change something. */
function listMutatingRoutes(stage: Stage): string[] {
  const safe = ['GET', 'HEAD', 'OPTIONS'];
  const all = stage.world.routes.filter(({ method }) => !safe.includes(method));
  return [...new Set(all.map(({ method, url }) => `${method} ${url}`))];
}

const actorKinds: readonly [RegExp, string][] = [
  [/ \/api\//, 'key'],
  [/ \/(console|sign-on)\//, 'staff'],
  [/ \/(client|sign-in|sign-out|join|set-password)/, 'person'],
];

/** What is wrong with what one route leaves behind; empty when the trail tells who, from where and what. */
async function judgeRoute(stage: Stage, route: string): Promise<string[]> {
  const [expected, send]: Case = cases[route]!;
  const answer = await send(stage);
  if (answer.status >= 400)
    return [
      `${route}: the request was refused with ${answer.status}: ${(await answer.text()).slice(0, 300)}`,
    ];
  await answer.arrayBuffer();
  const requestId = answer.headers.get('x-request-id');
  const { rows } = await stage.world.database.pool.query<{
    operation: string;
    actor_kind: string;
    actor_id: string | null;
    source_address: string | null;
  }>(
    'select operation, actor_kind, actor_id, source_address from audit_entries where request_id = $1 order by id',
    [requestId],
  );
  const kind = actorKinds.find(([pattern]) => pattern.test(route))?.[1];
  const faults: string[] = [];
  for (const operation of [expected].flat()) {
    const found = rows.find((row) => row.operation === operation);
    if (!found)
      faults.push(
        `${route}: no entry ${operation}; there are: ${rows.map((row) => row.operation).join(', ')}`,
      );
    else if (found.actor_kind !== kind || !found.actor_id || found.source_address !== '127.0.0.1')
      faults.push(`${route}: ${operation} does not say who and from where: ${JSON.stringify(found)}`);
  }
  return faults;
}

/** The same for a change that no route makes. */
async function judgeOther(stage: Stage, what: string): Promise<string[]> {
  const [expected, change] = otherCases[what]!;
  const { pool } = stage.world.database;
  const { rows: before } = await pool.query('select coalesce(max(id), 0) as id from audit_entries');
  await change(stage);
  const { rows } = await pool.query('select operation from audit_entries where id > $1', [before[0].id]);
  return [expected]
    .flat()
    .filter((operation) => rows.every((row) => row.operation !== operation))
    .map((operation) => `${what}: no entry ${operation}`);
}

/** All that is judged: the other changes, and the routes that have a case. */
export function listThings(stage: Stage): string[] {
  const routes = listMutatingRoutes(stage).filter((route) => route in cases && !(route in exceptions));
  return [...Object.keys(otherCases), ...routes];
}

/** What is wrong with what one of them leaves behind. */
export function judgeOne(stage: Stage, thing: string): Promise<string[]> {
  return thing in otherCases ? judgeOther(stage, thing) : judgeRoute(stage, thing);
}

/**
 * Every fault of every route and of every other change: those that have no case, those whose route is gone, and those
 * that leave no entry.
 */
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
