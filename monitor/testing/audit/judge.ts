/** Judges every route of the monitor that can change something by what it left in the audit trail. */
import { cases, exceptions, type Stage } from './cases.ts';

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

/** Every fault: routes without a case, cases without a route, and routes that leave no entry. With `stopsAtFirst` one is enough. */
export async function judgeAll(
  stage: Stage,
  stopsAtFirst = false,
): Promise<{ routes: number; faults: string[] }> {
  const isSafe = (method: string) => ['GET', 'HEAD', 'OPTIONS'].includes(method);
  const all = stage.server.routes.filter(({ method }) => !isSafe(method));
  const routes = [...new Set(all.map(({ method, url }) => `${method} ${url}`))];
  const faults: string[] = [];
  for (const route of routes) {
    if (stopsAtFirst && faults.length > 0) break;
    if (route in exceptions) continue;
    if (!(route in cases)) faults.push(`${route}: has no case that says what it leaves in the audit trail`);
    else faults.push(...(await judgeRoute(stage, route).catch((error) => [`${route}: ${String(error)}`])));
  }
  for (const route of [...Object.keys(cases), ...Object.keys(exceptions)])
    if (!routes.includes(route)) faults.push(`${route}: there is no such route`);
  return { routes: routes.length, faults };
}
