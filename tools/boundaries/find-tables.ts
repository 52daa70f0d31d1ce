/** Which tables a text of SQL names, and whether it only reads. Knows the SQL of this repository, not all of SQL. */

export interface TableUse {
  table: string;
  /** The text around it, for people. */
  text: string;
}

const writePattern =
  /\b(insert\s+into|update\s+(only\s+)?\w+(\s+(as\s+)?\w+)?\s+set|delete\s+from|truncate|merge\s+into|copy\s+\w+|for\s+(no\s+key\s+)?update|for\s+(key\s+)?share|lock\s+table|nextval)\b/i;

/** True for a statement, or a part of one, that changes or locks rows. */
export function changesRows(text: string): boolean {
  return writePattern.test(withoutComments(text));
}

/** Uses of these tables: after a keyword, in a list of `from`, before a column, or at the beginning of a join. */
export function findTableUses(text: string, tables: ReadonlySet<string>): TableUse[] {
  const sql = withoutComments(text);
  const ownNames = new Set(
    [...sql.matchAll(/\b(\w+)\s*(?:\([\w\s,]*\)\s*)?as\s+(?:materialized\s+)?\(/gi)].map(([, name]) => name!),
  );
  const found = new Map<string, string>();
  const note = (name: string | undefined, index: number) => {
    if (name === undefined || !tables.has(name) || ownNames.has(name) || found.has(name)) return;
    found.set(
      name,
      sql
        .slice(Math.max(0, index - 20), index + 60)
        .replaceAll(/\s+/g, ' ')
        .trim(),
    );
  };
  for (const match of sql.matchAll(
    /\b(?:from|join|into|update|using|truncate|table)\s+(?:only\s+)?(\w+)\b/gi,
  ))
    note(match[1], match.index);
  for (const match of sql.matchAll(/\bfrom\s+((?:\w+(?:\s+(?:as\s+)?\w+)?\s*,\s*)+\w+)/gi))
    for (const item of match[1]!.split(',')) note(item.trim().split(/\s/)[0], match.index);
  for (const match of sql.matchAll(/(?<![\w.])(\w+)\.\w+/g)) note(match[1], match.index);
  const joined = /^\s*(\w+)\s+(?:as\s+)?(?:\w+\s+)?(?:left|right|inner|cross|full|join)\b/i.exec(sql);
  note(joined?.[1], 0);
  return [...found].map(([table, around]) => ({ table, text: around }));
}

/** The tables that migrations leave behind, in the order in which they are applied. */
export function tablesOfMigrations(texts: readonly string[]): Set<string> {
  const tables = new Set<string>();
  const steps =
    /\bcreate\s+(?:unlogged\s+)?table\s+(?:if\s+not\s+exists\s+)?(\w+)(?!\s+partition\s+of)|\balter\s+table\s+(?:if\s+exists\s+)?(\w+)\s+rename\s+to\s+(\w+)|\bdrop\s+table\s+(?:if\s+exists\s+)?(\w+)/gi;
  for (const text of texts)
    for (const [, created, renamed, to, dropped] of withoutComments(text).matchAll(steps)) {
      if (created) tables.add(created);
      if (renamed) tables.delete(renamed);
      if (to) tables.add(to);
      if (dropped) tables.delete(dropped);
    }
  return tables;
}

function withoutComments(text: string): string {
  return text.replaceAll(/--[^\n]*/g, '');
}
