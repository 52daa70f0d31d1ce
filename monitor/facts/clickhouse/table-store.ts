/**
 * The tables of facts in ClickHouse. Applied ones never change; a new one goes to the end.
 *
 * Rows are kept as they came and added up by reads, so that an append only ever adds. Tables are divided by day. Addresses are
 * their 4 or 16 bytes: they compare by family and then as addresses do, first by `length`. Rows of one server's address lie
 * together. `verdict_epoch` says which verdicts about foreign addresses are newer than the row's own
 * (`verdict-store.ts`).
 */

import { CodedError } from '#common/errors/index.ts';
import type { KeptData } from '#contracts/retention.ts';
import { kept } from '#contracts/retention.ts';
import type { Engine } from './engine-store.ts';
import { ch, number, plain } from './statement.ts';

const windowSize = 20_000;

const table = (name: string, columns: string, order: string, keptFor: string) => `
  create table if not exists ${name} (${columns})
  engine = MergeTree partition by toDate(minute) order by (${order})
  ttl minute + interval ${keptFor} delete
  settings non_replicated_deduplication_window = ${windowSize}, ttl_only_drop_parts = 1`;

const place = `
  site_id UInt32 codec(ZSTD),
  minute DateTime('UTC') codec(Delta, ZSTD),
  capture_id UInt32 codec(ZSTD),
  sensor_id UInt32 codec(ZSTD),
  capture LowCardinality(String)`;
const counter = (name: string) => `${name} UInt64 codec(T64, ZSTD)`;
const verdict = `is_foreign UInt8 codec(ZSTD), verdict_epoch UInt32 codec(ZSTD)`;
const service = `
  vantage UInt8 codec(ZSTD),
  direction UInt8 codec(ZSTD),
  name LowCardinality(String),
  protocol UInt8 codec(ZSTD),
  server_port Int32 codec(ZSTD),
  evidence UInt8 codec(ZSTD),
  is_attributed UInt8 codec(ZSTD)`;

/** How long tables are kept, which may differ from the time that they were made with. */
const timeToLive: Readonly<Record<string, KeptData>> = {
  ...{
    capture_minutes: 'traffic',
    host_minutes: 'traffic',
    application_facts: 'traffic',
    peer_minutes: 'traffic',
  },
  endpoint_pairs: 'pairs',
};

/** By number, which is one more than the place in the list. */
export const migrations: readonly (readonly string[])[] = [
  [
    table(
      'capture_minutes',
      `${place}, spool_id UUID, sequence UInt64, appended_at DateTime('UTC'), vantage UInt8, observed_ms UInt32,
      ${['packets', 'ip_packets', 'ip_bytes', 'non_ip_packets', 'parser_dropped', 'kernel_dropped', 'detail_truncated', 'merged_frames'].map(counter).join(', ')}`,
      'site_id, minute, capture_id',
      '3 month',
    ),
    table(
      'host_minutes',
      `${place}, address LowCardinality(String), segment LowCardinality(String), device_key LowCardinality(String), ${verdict},
      ${['rx_bytes', 'tx_bytes', 'packets', 'lan_rx_bytes', 'lan_tx_bytes'].map(counter).join(', ')}`,
      'site_id, address, minute, capture_id',
      '3 month',
    ),
    table(
      'application_facts',
      `${place}, ${service}, local LowCardinality(String), segment LowCardinality(String), ${verdict},
      last_sent_ms UInt64 codec(Delta, ZSTD), ${['inbound_bytes', 'outbound_bytes', 'packets'].map(counter).join(', ')}`,
      'site_id, local, minute, direction, capture_id, name',
      '3 month',
    ),
    table(
      'endpoint_pairs',
      `${place}, ${service}, local LowCardinality(String), segment LowCardinality(String), ${verdict},
      client String codec(ZSTD), server String codec(ZSTD),
      ${['client_bytes', 'server_bytes', 'packets'].map(counter).join(', ')}`,
      'site_id, local, minute, direction, capture_id, name',
      '24 hour',
    ),
    table(
      'peer_minutes',
      `${place}, vantage UInt8 codec(ZSTD), direction UInt8 codec(ZSTD), local LowCardinality(String),
      segment LowCardinality(String), ${verdict}, network String codec(ZSTD),
      ${['inbound_bytes', 'outbound_bytes', 'packets'].map(counter).join(', ')}`,
      'site_id, local, minute, direction, capture_id, network',
      '3 month',
    ),
  ],
  [
    // Of rows that came from PostgreSQL with a move: which minutes of the hour they stand for (`peer-store.ts`).
    'alter table peer_minutes add column if not exists minutes UInt64 codec(T64, ZSTD)',
    'create table if not exists store_identity (id UUID) engine = MergeTree order by tuple()',
  ],
  // Rows of before have none.
  ['own_scan_rx_bytes', 'own_scan_tx_bytes', 'own_scan_packets'].map(
    (name) => `alter table host_minutes add column if not exists ${counter(name)}`,
  ),
  ['dropped_rx_bytes', 'dropped_tx_bytes', 'dropped_rx_packets', 'dropped_tx_packets'].map(
    (name) => `alter table host_minutes add column if not exists ${counter(name)}`,
  ),
];

const all = [
  ...['capture_minutes', 'host_minutes', 'application_facts', 'endpoint_pairs', 'peer_minutes'],
  ...['store_identity', 'schema_versions'],
];

/** Removes all tables with what is in them. */
export async function dropTables(engine: Engine): Promise<void> {
  for (const name of all) await engine.run(plain(`drop table if exists ${name} sync`));
}

// Brings the tables of facts in ClickHouse up to date, and refuses what this program can't use.

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
