/** What routes that change something must leave in the audit trail: one request for each of them, and the entries of it. */
import type { Pool } from 'pg';

interface Answer {
  status: number;
  headers: Headers;
  text: string | (() => Promise<string>);
}

/** The operations that the request must leave entries of, and the request itself. */
export type Case<Stage, A extends Answer> = readonly [
  operations: string | readonly string[],
  send: (stage: Stage) => Promise<A>,
];

/** Of a request; a name that begins with a colon stands for the path's parameter. */
type Fields = Readonly<Record<string, unknown>>;

/**
 * Cases of routes that take fields. `:siteId` and the like are read from the stage where the fields do not name them.
 *
 * usage: `form('POST /servers/:id/stop', 'server.stop', async ({ server }) => ({ ':id': await server(), hard: 'on' }))`
 */
export const casesOf =
  <Stage extends object, A extends Answer>(
    send: (stage: Stage, method: string, path: string, fields: Fields) => Promise<A>,
  ) =>
  (
    route: string,
    operations: string | readonly string[],
    given: Fields | ((stage: Stage) => Fields | Promise<Fields>) = {},
  ): readonly [string, Case<Stage, A>] => [
    route,
    [
      operations,
      async (stage) => {
        const fields = typeof given === 'function' ? await given(stage) : given;
        const [method, pattern] = route.split(' ') as [string, string];
        const path = pattern.replaceAll(/:(\w+)/g, (name, bare: keyof Stage) =>
          String(fields[name] ?? stage[bare]),
        );
        const named = Object.entries(fields).filter(([name]) => !name.startsWith(':'));
        return send(stage, method, path, Object.fromEntries(named));
      },
    ],
  ];

/** Form fields are texts. */
export const textsOf = (fields: Fields): Record<string, string> =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, String(value)]));

interface AuditedRoutes<Stage, A extends Answer> {
  /** Of the running server. */
  routes: readonly { method: string; url: string }[];
  pool: Pool;
  cases: Readonly<Record<string, Case<Stage, A>>>;
  /** Routes that may leave nothing, and why. */
  exceptions: Readonly<Record<string, string>>;
  /** Who acts by a route, as entries name it. */
  actorKindOf(route: string): string;
}

/** Sends every case; returns what is wrong with the entries, and routes without a case. */
export async function judgeRoutes<Stage, A extends Answer>(
  stage: Stage,
  { routes, pool, cases, exceptions, actorKindOf }: AuditedRoutes<Stage, A>,
): Promise<string[]> {
  const unsafe = new Set(
    routes
      .filter(({ method }) => !['GET', 'HEAD', 'OPTIONS'].includes(method))
      .map(({ method, url }) => `${method} ${url}`),
  );
  const known = [...Object.keys(cases), ...Object.keys(exceptions)];
  const faults = [
    ...[...unsafe].filter((route) => !known.includes(route)).map((route) => `${route} has no case`),
    ...known.filter((route) => !unsafe.has(route)).map((route) => `there is no ${route}`),
  ];
  for (const [route, [operations, send]] of Object.entries(cases)) {
    const answer = await send(stage);
    const text = typeof answer.text === 'string' ? answer.text : await answer.text();
    if (answer.status >= 400)
      faults.push(`${route} was refused with ${answer.status}: ${text.slice(0, 300)}`);
    const { rows } = await pool.query<{ operation: string; isWhole: boolean }>(
      `select operation, actor_kind = $2 and actor_id is not null and source_address = '127.0.0.1'
         and (actor_name is not null or actor_kind = 'key') as "isWhole" from audit_entries where request_id = $1`,
      [answer.headers.get('x-request-id'), actorKindOf(route)],
    );
    for (const operation of [operations].flat())
      if (!rows.some((row) => row.operation === operation && row.isWhole))
        faults.push(`${route} left no whole entry ${operation}, but ${JSON.stringify(rows)}`);
  }
  return faults;
}
