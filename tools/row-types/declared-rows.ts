/**
 * The row types that store files declare beside their statements: `sql<Row>`…`.execute(db)`, `db.executeQuery<Row>(…)`,
 * `pool.query<Row>(…)`. Asks the TypeScript compiler, so that `Pick`, intersections and imported types are resolved.
 */
import { API, type Checker, SymbolFlags, type Type, TypeFlags } from 'typescript/unstable/sync';

/** What a value may be in JavaScript. `json`: an object or array that is neither a date nor bytes. */
export type Kind = 'number' | 'string' | 'boolean' | 'Date' | 'Buffer' | 'array' | 'object' | 'null' | 'any';

export interface Member {
  kinds: ReadonlySet<Kind>;
  /** The statement may leave it out. */
  isOptional: boolean;
}

export interface DeclaredRow {
  /** `file:line:column` of the call's name, as the stack of a call says it. */
  place: string;
  /** The function that the call is in, for people. */
  inside: string;
  /** Null where the call declares no type of rows. */
  members: Map<string, Member> | null;
}

interface AstNode {
  kind: number;
  pos: number;
  end: number;
  text?: string;
  name?: AstNode;
  tag?: AstNode;
  expression?: AstNode;
  arguments?: readonly AstNode[];
  parameters?: readonly AstNode[];
  typeArguments?: readonly AstNode[];
  forEachChild(visit: (child: AstNode) => void): void;
}

const callNames = ['execute', 'executeQuery', 'query'];

/** Only store files and what they import: to load the whole project takes twice as long. */
const project = 'tools/row-types/stores.tsconfig.json';

export function readDeclaredRows(root: string, files: readonly string[]): DeclaredRow[] {
  const api = new API({ cwd: root });
  try {
    const snapshot = api.updateSnapshot({ openProjects: [`${root}/${project}`] });
    const { program, checker } = snapshot.getProjects()[0]!;
    return files.flatMap((file) => {
      const source = program.getSourceFile(`${root}/${file}`);
      if (!source) throw new Error(`row types: ${project} does not include ${file}`);
      return rowsOf(checker, source as unknown as AstNode, file);
    });
  } finally {
    api.close();
  }
}

function rowsOf(checker: Checker, source: AstNode, file: string): DeclaredRow[] {
  const rows: DeclaredRow[] = [];
  const text = source.text!;
  const visit = (node: AstNode, around: string): void => {
    const inside = node.parameters && node.name?.text ? node.name.text : around;
    const callee = node.arguments ? node.expression : undefined;
    const name = callee?.name?.text;
    if (callee && name !== undefined && callNames.includes(name) && isStatement(callee, name)) {
      const start = callee.name!.end - name.length;
      const before = text.slice(0, start).split('\n');
      const declared = node.typeArguments?.[0] ?? callee.expression?.typeArguments?.[0];
      const type = declared && checker.getTypeFromTypeNode(declared as never);
      rows.push({
        inside,
        place: `${file}:${before.length}:${before.at(-1)!.length + 1}`,
        members: type ? membersOf(checker, type) : null,
      });
    }
    node.forEachChild((child) => visit(child, inside));
  };
  source.forEachChild((child) => visit(child, 'the module'));
  return rows;
}

/** `execute` of a transaction takes a function and is no statement. */
function isStatement(callee: AstNode, name: string): boolean {
  return name !== 'execute' || callee.expression?.tag !== undefined;
}

/** Null for a type parameter and `unknown`, which say nothing. */
function membersOf(checker: Checker, type: Type): Map<string, Member> | null {
  if (type.flags & (TypeFlags.TypeParameter | TypeFlags.Unknown | TypeFlags.Any)) return null;
  return new Map(
    checker.getPropertiesOfType(type).map((member) => [
      member.name,
      {
        kinds: kindsOf(checker, checker.getTypeOfSymbol(member)!),
        isOptional: (member.flags & SymbolFlags.Optional) !== 0,
      },
    ]),
  );
}

function kindsOf(checker: Checker, type: Type): ReadonlySet<Kind> {
  const kinds = new Set<Kind>();
  const visit = (one: Type): void => {
    if (one.isUnionType()) for (const part of one.getTypes()) visit(part);
    else kinds.add(kindOf(checker, one));
  };
  visit(type);
  return kinds;
}

function kindOf(checker: Checker, type: Type): Kind {
  const { flags } = type;
  if (flags & (TypeFlags.Null | TypeFlags.Undefined)) return 'null';
  if (flags & TypeFlags.NumberLike) return 'number';
  if (flags & TypeFlags.StringLike) return 'string';
  if (flags & TypeFlags.BooleanLike) return 'boolean';
  if (flags & (TypeFlags.Any | TypeFlags.Unknown | TypeFlags.TypeParameter)) return 'any';
  const text = checker.typeToString(type);
  if (text === 'Date') return 'Date';
  if (/^(Buffer|Uint8Array)\b/.test(text)) return 'Buffer';
  return checker.isArrayLikeType(type) ? 'array' : 'object';
}
