/**
 * Plants a bug in the SQL of this process: every statement goes through `rewrite` on its way to the server. Tests use it
 * to show that they would see the bug; nothing of the program has a switch for it.
 */
import pg from 'pg';

export interface PlantedSql extends Disposable {
  /** Statements that were changed so far. */
  readonly changed: number;
}

type Query = (this: unknown, config: unknown, ...rest: unknown[]) => unknown;

/** Plants so far: two of them change one statement differently. */
let plants = 0;

export function plantSql(rewrite: (text: string, values: readonly unknown[]) => string): PlantedSql {
  plants += 1;
  const suffix = `planted-${plants}`;
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const usual = prototype.query;
  let changed = 0;
  const planted = (text: string, values: unknown) => {
    const rewritten = rewrite(text, Array.isArray(values) ? values : []);
    if (rewritten !== text) changed += 1;
    return rewritten;
  };
  prototype.query = function (config, ...rest) {
    if (typeof config === 'string') return usual.call(this, planted(config, rest[0]), ...rest);
    const { text, name, values } = config as { text?: string; name?: string; values?: unknown };
    if (typeof text !== 'string') return usual.call(this, config, ...rest);
    const rewritten = planted(text, values ?? rest[0]);
    // A prepared statement keeps the text that its name had first.
    const given =
      rewritten === text
        ? config
        : { ...(config as object), text: rewritten, name: name && `${name}-${suffix}` };
    return usual.call(this, given, ...rest);
  };
  return {
    get changed() {
      return changed;
    },
    [Symbol.dispose]() {
      prototype.query = usual;
    },
  };
}

const pairs =
  /\(s\.id, s\.tenant_id\) in \(select \* from unnest\(\$\d+::bigint\[\],\s*(\$\d+::bigint\[\])\)\)/;

/** Planted fault: a query for one workspace returns the rows of all. */
export function withoutOwner(text: string): string {
  // Servers that are asked for at once are given to the owner that their row names: here that is who asked first.
  const [, owners] = pairs.exec(text) ?? [];
  return (
    owners
      ? text.replace('s.tenant_id,', `(${owners})[1] as tenant_id,`).replace(pairs, '(true or $&)')
      : text
  ).replaceAll(/(?:\b\w+\.)?tenant_id = (?:any\(\$\d+(?:::bigint\[\])?\)|\$\d+)/g, '(true or $&)');
}
