/** A module as the import law sees it: its place, its imports, its SQL, and its long functions. */

export const programs = ['operations', 'monitor', 'sensor'] as const;

export interface Place {
  path: string;
  /** First folder: a program, `common`, `contracts`, `service-kit`, `lab`, … */
  top: string;
  /** Second folder of a program, for features; `surfaces/portal` for a surface; null for files directly in the program. */
  unit: string | null;
  kind: 'feature' | 'surface' | 'commands' | 'migrations' | 'root' | 'other';
  isTest: boolean;
  /** The path within the unit. */
  inside: string;
}

export interface Module {
  place: Place;
  imports: { text: string; names: string[]; isTypeOnly: boolean; target: Place | null }[];
  sqlTexts: string[];
  /** Every text of a store file, whole, and the tables that its calls name: `copyRows(db, 'x', …)`, `selectFrom('x')`. */
  storeTexts: string[];
  builderTables: string[];
  lines: number;
  longFunctions: LongFunction[];
}

export const functionLinesMax = 120;

/**
 * A function of more lines, whose comment gives no reason for its length. One without a name is called after the function
 * around it.
 */
export interface LongFunction {
  name: string;
  lines: number;
}

/** What breaks a rule. */
export interface Offence {
  rule: string;
  file: string;
  what: string;
}

/** Files that hold SQL: `store.ts`, `…-store.ts`. */
export const isStore = (path: string) => /(^|[/-])store\.ts$/.test(path);

export function placeOf(path: string): Place {
  const parts = path.split('/');
  const top = parts[0]!;
  const isTest = /\.(test|bench|prove)\.ts$/.test(path) || parts.includes('testing') || top === 'proofs';
  const base = { path, top, isTest };
  if (!(programs as readonly string[]).includes(top))
    return { ...base, unit: null, kind: 'other', inside: parts.slice(1).join('/') };
  if (parts.length === 2) return { ...base, unit: null, kind: 'root', inside: parts[1]! };
  const second = parts[1]!;
  if (second === 'surfaces') {
    return { ...base, unit: `surfaces/${parts[2]}`, kind: 'surface', inside: parts.slice(3).join('/') };
  }
  const kind = second === 'commands' ? 'commands' : second === 'migrations' ? 'migrations' : 'feature';
  return { ...base, unit: second, kind, inside: parts.slice(2).join('/') };
}
