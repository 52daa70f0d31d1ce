/** Compares a declared row with the columns that PostgreSQL describes. */
import type { DeclaredRow, Kind } from './declared-rows.ts';
import type { Column } from './describe.ts';
import type { Statement } from './run-stores.ts';

/** What the driver makes of PostgreSQL's types (`service-kit/postgres/database.ts` reads int8 as a number). */
const kindsOfTypes: Readonly<Record<string, readonly Kind[]>> = {
  int2: ['number'],
  int4: ['number'],
  int8: ['number'],
  oid: ['number'],
  float4: ['number'],
  float8: ['number'],
  bool: ['boolean'],
  bytea: ['Buffer'],
  date: ['Date'],
  timestamp: ['Date'],
  timestamptz: ['Date'],
  interval: ['object'],
  json: ['number', 'string', 'boolean', 'array', 'object', 'null'],
  jsonb: ['number', 'string', 'boolean', 'array', 'object', 'null'],
  void: ['any'],
};

/** Every other type comes as text; arrays as arrays. */
function kindsOfColumn(column: Column): readonly Kind[] {
  if (column.type.startsWith('_')) return ['array'];
  return kindsOfTypes[column.type] ?? ['string'];
}

/** What is wrong with the row type of a statement, in sentences. */
export function compareRow(row: DeclaredRow, statement: Statement): string[] {
  if (statement.columns === null) return [`PostgreSQL refuses it: ${statement.error}`];
  if (row.members === null) return [];
  const faults: string[] = [];
  const columns = new Map(statement.columns.map((column) => [column.name, column]));
  for (const [name, { kinds, isOptional }] of row.members) {
    const column = columns.get(name);
    if (column === undefined && isOptional) continue;
    if (column === undefined) faults.push(`the type has "${name}", the statement has no such column`);
    else faults.push(...compareColumn(column, kinds));
  }
  for (const name of columns.keys())
    if (!row.members.has(name))
      faults.push(`the statement has a column "${name}", the type has no such member`);
  return faults;
}

function compareColumn(column: Column, declared: ReadonlySet<Kind>): string[] {
  if (declared.has('any')) return [];
  const possible = kindsOfColumn(column);
  const faults: string[] = [];
  const wrong = [...declared].filter((kind) => kind !== 'null' && !possible.includes(kind));
  if (wrong.length > 0 && !possible.includes('any'))
    faults.push(
      `"${column.name}" is ${column.type} (${possible.join(' or ')}), the type says ${wrong.join(' | ')}`,
    );
  if (column.mayBeNull && !declared.has('null'))
    faults.push(`"${column.name}" may be null in its table, the type has no null`);
  return faults;
}
