/** Brings the tables of facts in ClickHouse up to date, and refuses what this program can't use. */

import { CodedError } from '#common/errors/index.ts';
import { kept } from '#contracts/retention.ts';
import type { Engine } from './engine-store.ts';
import { ch, number, plain } from './statement.ts';
import { migrations, timeToLive } from './table-store.ts';

/** The oldest server with all that statements use. */
const versionMin = [25, 8] as const;

/**
 * Applies the migrations that are missing; any number of processes may do so at once, because each of them may be repeated. Throws
 * `facts.wrong_version` for a server that is too old and for tables of a newer program.
 */
export async function migrate(engine: Engine): Promise<void> {
  const version = await engine.version();
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < versionMin[0] || (major === versionMin[0] && minor < versionMin[1]))
    throw new CodedError(
      'facts.wrong_version',
      `ClickHouse ${version} is too old for facts: ${versionMin.join('.')} or newer is needed.`,
    );
  await engine.run(
    plain(`create table if not exists schema_versions (version UInt32, applied_at DateTime('UTC') default now())
    engine = MergeTree order by version`),
  );
  const [{ version: stored }] = (await engine.rows<{ version: number }>(
    ch`select max(version) as version from schema_versions`,
  )) as [{ version: number }];
  if (stored > migrations.length)
    throw new CodedError(
      'facts.wrong_version',
      `The facts in ClickHouse were made by a newer program: their version is ${stored}, this program knows ${migrations.length}. Start the newer program.`,
    );
  for (const [i, statements] of migrations.entries()) {
    if (i < stored) continue;
    for (const statement of statements) await engine.run(plain(statement));
    await engine.run(ch`insert into schema_versions (version) select ${number(i + 1)}`);
  }
  await keepFor(engine);
}

/** Gives tables the time to live that the program's table of retention has. */
async function keepFor(engine: Engine): Promise<void> {
  const stored = await engine.rows<{ name: string; definition: string }>(
    ch`select name, create_table_query as definition from system.tables where database = currentDatabase()`,
  );
  for (const { name, definition } of stored) {
    const data = timeToLive[name];
    if (data === undefined) continue;
    const [count, unit] = kept[data].split(' ') as [string, string];
    const ttl = `minute + toInterval${unit[0]!.toUpperCase()}${unit.slice(1).replace(/s$/, '')}(${count})`;
    if (!definition.includes(`TTL ${ttl}`))
      await engine.run(plain(`alter table ${name} modify ttl ${ttl} delete`));
  }
}
