/**
 * Calls every exported function of store files with stand-ins and collects the statements that they make, each with the
 * place of the call that executes it. No statement runs: each is described, and answered with a row of stand-ins or none.
 */
import { pathToFileURL } from 'node:url';
import {
  type CompiledQuery,
  type DatabaseConnection,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';
import type { Column, Describer } from './describe.ts';

export interface Statement {
  /** `file:line:column` of the call's name, such as `execute`. */
  place: string;
  text: string;
  /** Null: PostgreSQL refuses to prepare it. */
  columns: Column[] | null;
  error: string | null;
}

/** Statements that one call may make; a function that goes on until there are no rows stops here. */
const statementsMax = 40;

/** Functions that need more than stand-ins: `file:function` → the arguments after the database. */
export type Arguments = Readonly<Record<string, readonly (readonly unknown[])[]>>;

export async function runStores(
  root: string,
  files: readonly string[],
  describer: Describer,
  given: Arguments,
): Promise<Statement[]> {
  const statements = new Map<string, Statement>();
  let count = 0;
  let answered: readonly unknown[] = [];
  const answer = async (text: string, place: string | null) => {
    count += 1;
    if (count > statementsMax) throw new Error('enough statements of one call');
    if (place !== null) {
      const key = `${place} ${text}`;
      if (!statements.has(key)) statements.set(key, await describe(describer, text, place));
    }
    return { rows: answered, numAffectedRows: 1n, rowCount: 1 };
  };
  const db = createRecordingDatabase(root, new Set(files), answer);
  for (const file of files) {
    const exported: Record<string, unknown> = await import(pathToFileURL(`${root}/${file}`).href);
    for (const [name, value] of Object.entries(exported)) {
      if (typeof value !== 'function') continue;
      for (const others of given[`${file}:${name}`] ?? [[]]) {
        // Code goes on differently after a row, after a row whose members are all absent, and after none.
        for (answered of [[createStandIn()], [{}], []]) {
          count = 0;
          await callWith(value as (...all: unknown[]) => unknown, db, others);
        }
      }
    }
  }
  return [...statements.values()];
}

async function describe(describer: Describer, text: string, place: string): Promise<Statement> {
  try {
    return { place, text, columns: await describer.describe(text), error: null };
  } catch (error) {
    return { place, text, columns: null, error: (error as Error).message };
  }
}

/** What the function throws does not matter: its statements up to there have been seen. */
async function callWith(
  made: (...all: unknown[]) => unknown,
  db: unknown,
  others: readonly unknown[],
): Promise<void> {
  const standIn = createStandIn({ db, reader: db, tx: db, trx: db, pool: db });
  const rest = Array.from({ length: 8 }, (_, index) => (index < others.length ? others[index] : standIn));
  try {
    const result = made(db, ...rest);
    if (result instanceof Promise) await result;
  } catch {
    // A stand-in does not fit everywhere.
  }
}

type Answer = (
  text: string,
  place: string | null,
) => Promise<{ rows: readonly unknown[]; numAffectedRows: bigint; rowCount: number }>;

/** Kysely over a driver that describes instead of executing; it also takes calls as a pool does. */
function createRecordingDatabase(root: string, files: ReadonlySet<string>, answer: Answer): unknown {
  const places = new WeakMap<object, string | null>();
  const here = () => placeOf(root, files, new Error().stack ?? '');
  const connection = {
    executeQuery: (query: CompiledQuery) => answer(query.sql, places.get(query.queryId) ?? null),
  } as unknown as DatabaseConnection;
  const done = async () => {};
  const inner = new Kysely({
    dialect: {
      createAdapter: () => new PostgresAdapter(),
      createIntrospector: (db) => new PostgresIntrospector(db),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createDriver: () => ({
        init: done,
        acquireConnection: async () => connection,
        beginTransaction: done,
        commitTransaction: done,
        rollbackTransaction: done,
        releaseConnection: done,
        destroy: done,
      }),
    },
    plugins: [
      {
        transformQuery({ node, queryId }) {
          places.set(queryId, here());
          return node;
        },
        transformResult: async ({ result }) => result,
      },
    ],
  });
  const outer = (db: object): unknown =>
    new Proxy(db, {
      get(target, property) {
        if (property === 'executeQuery')
          return (query: CompiledQuery) => {
            const own = { ...query, queryId: { queryId: 'own' } } as unknown as CompiledQuery;
            places.set(own.queryId, here());
            return connection.executeQuery(own, undefined as never);
          };
        if (property === 'query')
          return (query: string | { text: string }) =>
            answer(typeof query === 'string' ? query : query.text, here());
        if (property === 'isTransaction') return true;
        if (property === 'transaction')
          return () => {
            const builder = {
              setIsolationLevel: () => builder,
              execute: (work: (db: unknown) => unknown) => work(outer(db)),
            };
            return builder;
          };
        const value = Reflect.get(target, property, target);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  return outer(inner);
}

/** The nearest caller in one of the files, as `file:line:column`. */
function placeOf(root: string, files: ReadonlySet<string>, stack: string): string | null {
  for (const [, file, line, column] of stack.matchAll(/file:\/\/([^\s)]+?):(\d+):(\d+)/g)) {
    const path = file!.slice(root.length + 1);
    if (file!.startsWith(`${root}/`) && files.has(path)) return `${path}:${line}:${column}`;
  }
  return null;
}

// A value that stands in for any argument of a store function: it has every property and method, and can be iterated and
// converted. Statements are only described and never run, so its value does not matter.

/** What code looks for to tell apart kinds of values; the stand-in is none of these. */
const absent = new Set<PropertyKey>(['then', 'toOperationNode', 'isOperationNodeSource', 'toJSON']);

/** Names that are called rather than read. No column or option has one of them. */
const methods = new Set<PropertyKey>(
  [Array, String, Date, Map, Set, Number, Uint8Array].flatMap((type) =>
    Object.getOwnPropertyNames(type.prototype).filter((name) => name !== 'length' && name !== 'size'),
  ),
);

/** `known` gives properties with real values, such as a database. */
function createStandIn(known: Readonly<Record<string, unknown>> = {}): unknown {
  const value: unknown = new Proxy(
    {},
    {
      get(_target, property) {
        if (absent.has(property)) return undefined;
        if (property === Symbol.toPrimitive) return (hint: string) => (hint === 'string' ? '1' : 1);
        if (property === Symbol.iterator) return () => [value].values();
        if (property in known && typeof property === 'string') return known[property];
        if (property === 'length' || property === 'size') return 1;
        if (typeof property === 'symbol') return undefined;
        if (property === 'entries') return () => [[0, value]].values();
        return methods.has(property) ? () => value : value;
      },
      has: () => true,
    },
  );
  return value;
}
