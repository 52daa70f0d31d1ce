/** How PostgreSQL runs the statements of a piece of the program, with what it really read. */
import { plantSql } from './planted-sql.ts';

export interface PlanNode {
  'Node Type': string;
  'Relation Name'?: string;
  'Index Name'?: string;
  'Index Cond'?: string;
  'Actual Rows': number;
  'Actual Loops': number;
  'Rows Removed by Filter'?: number;
  'Rows Removed by Index Recheck'?: number;
  Plans?: PlanNode[];
}

interface Database {
  pool: { query(query: { text: string; values: unknown[] }): Promise<{ rows: Record<string, unknown>[] }> };
}

/** Every node of the plans of the statements that `run` sends; they are run once more for it. */
export async function explainStatements(
  { pool }: Database,
  run: () => Promise<unknown>,
): Promise<PlanNode[]> {
  const seen: { text: string; values: readonly unknown[] }[] = [];
  {
    using _ = plantSql((text, values) => {
      seen.push({ text, values });
      return text;
    });
    await run();
  }
  const nodes: PlanNode[] = [];
  for (const { text, values } of seen) {
    // The bounds of a transaction have no plan.
    if (/^\s*(begin|commit|rollback)\b/i.test(text)) continue;
    const { rows } = await pool.query({
      text: `explain (analyze, format json) ${text}`,
      values: [...values],
    });
    const [plan] = rows[0]!['QUERY PLAN'] as [{ Plan: PlanNode }];
    nodes.push(...nodesOf(plan.Plan));
  }
  return nodes;
}

const nodesOf = (node: PlanNode): PlanNode[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

/** Rows that a node looked at, those that it dropped included. */
export function rowsReadBy(node: PlanNode): number {
  const dropped = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
  return (node['Actual Rows'] + dropped) * node['Actual Loops'];
}
