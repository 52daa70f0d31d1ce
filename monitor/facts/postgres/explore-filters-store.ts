/** Filters of a query as conditions over a row `b` of what it reads. */
import { type RawBuilder, sql } from 'kysely';
import { directionCode } from '../contract/codes.ts';
import { type ExploredFilter, splitPlaces } from '../contract/exploration.ts';
import type { Direction } from '../contract/facts.ts';
import { isOfSensors } from './judge-store.ts';

/**
 * A condition over `b`. Rows without a value match no value and are left in by "is not". The columns stand bare, as statistics
 * and indexes know them: without how many rows are left the planner sums millions in one process.
 */
export function conditionOf({ dimension, is, values }: ExploredFilter): RawBuilder<unknown> {
  const matches = matchOf(dimension, values);
  if (is) return matches;
  const column = nullable[dimension];
  return column === undefined ? sql`not ${matches}` : sql`(${column} is null or not ${matches})`;
}

/** What a filter compares, where a row may be without it. */
const nullable: Partial<Record<ExploredFilter['dimension'], RawBuilder<unknown>>> = {
  address: sql`b.local`,
  device: sql`b.device_key`,
  sensor: sql`b.capture_id`,
  scope: sql`b.vantage`,
};

function matchOf(dimension: ExploredFilter['dimension'], values: readonly string[]): RawBuilder<unknown> {
  switch (dimension) {
    case 'address':
      return placesMatch(sql`b.local`, sql`b.segment`, values);
    case 'peer':
      return placesMatch(sql`b.peer`, sql`''`, values);
    case 'direction':
      return sql`(b.direction = any(${values.map((one) => directionCode(one as Direction))}::smallint[]))`;
    case 'transport':
      return sql`(b.protocol = any(${values.map(Number)}::smallint[]))`;
    case 'application':
      return sql`(b.name = any(${[...values]}::text[]))`;
    case 'port':
      return portsMatch(values);
    case 'scope':
      return sql`(b.vantage = any(${values.map((one) => (one === 'uplink' ? 1 : 2))}::smallint[]))`;
    case 'sensor':
      return sql`(${isOfSensors(sql`b.capture_id`, values)})`;
    case 'device':
      return sql`(b.device_key = any(${[...values]}::text[]))`;
  }
}

/** Never null: `none` is a value. */
function portsMatch(values: readonly string[]): RawBuilder<unknown> {
  const ports = values.filter((one) => /^\d+$/.test(one)).map(Number);
  const ofProtocols = values.filter((one) => one.includes('/')).map((one) => one.split('/').map(Number));
  const isNone = sql`b.server_port is null`;
  const isPort = sql`b.server_port = any(${ports}::int[])`;
  const isOne =
    ofProtocols.length === 0
      ? isPort
      : sql`(${isPort} or (b.protocol, b.server_port) in (select * from unnest(
          ${ofProtocols.map(([protocol]) => protocol)}::smallint[], ${ofProtocols.map(([, port]) => port)}::int[])))`;
  return values.includes('none') ? sql`(${isNone} or ${isOne})` : sql`(not ${isNone} and ${isOne})`;
}

/** Whether an address (and its segment) is one of these. */
export function placesMatch(
  address: RawBuilder<unknown>,
  segment: RawBuilder<unknown>,
  values: readonly string[],
): RawBuilder<unknown> {
  const { addresses, networks, segments } = splitPlaces(values);
  // Each network by itself, so that an index can answer it.
  const parts = networks.map((one) => sql`${address} <<= ${one}::inet`);
  if (addresses.length > 0 || values.length === 0) parts.push(sql`${address} = any(${addresses}::inet[])`);
  if (segments.length > 0)
    parts.push(sql`(${address}, ${segment}) in (select * from unnest(${segments.map((one) => one.address)}::inet[],
      ${segments.map((one) => one.segment)}::text[]))`);
  return sql`(${sql.join(parts, sql` or `)})`;
}
