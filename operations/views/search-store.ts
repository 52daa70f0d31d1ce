/**
 * Search from everywhere: servers by name and by address. Every statement is limited, filtered by the owner, and uses an
 * index of 0260.
 */
import { sql } from 'kysely';
import type { Queryable } from '#service-kit/postgres/index.ts';
import type { Scope } from './scope.ts';

export interface ServerHit {
  serverId: number;
  serverName: string;
  tenantName: string;
  /** In the terms of `statusOf`. */
  status: string;
}

export interface AddressHit extends ServerHit {
  address: string;
}

const hit = sql`s.id as server_id, s.name as server_name, t.name as tenant_name,
  case s.provisioning_state when 'ready' then s.power_state else s.provisioning_state end as status`;

const owned = (scope: Scope) =>
  scope === 'all' ? sql`true` : sql`s.tenant_id = any(${[...scope]}::bigint[])`;

const wordsMax = 6;

/** The words of a typed text as the indexes of 0260 cut names: only letters and digits, lower case. */
export function searchWords(typed: string): string[] {
  const words = typed.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  return words.filter((word) => word !== '').slice(0, wordsMax);
}

/** `web 1` as `'web':* & '1':*`. */
export function asWordQuery(words: readonly string[]): string {
  return words.map((word) => `'${word}':*`).join(' & ');
}

/**
 * Living servers with all of these beginnings of words in their name or host name, or with this id, which comes first.
 * The limit stands outside of what matches: inside, it would make reading all servers look cheap.
 */
export async function searchServers(
  db: Queryable,
  scope: Scope,
  asked: { id: number | null; words: readonly string[] },
  limit: number,
): Promise<ServerHit[]> {
  const { rows } = await sql<ServerHit>`
    with matching as materialized (
      select s.id from servers s
      where search_words(s.name || ' ' || s.hostname) @@ ${asWordQuery(asked.words)}::tsquery
        and s.provisioning_state <> 'deleted' and ${owned(scope)}),
    found as (
      (select s.id from servers s where s.id = ${asked.id} and ${owned(scope)} and s.provisioning_state <> 'deleted')
      union
      (select id from matching limit ${limit * 4}))
    select ${hit} from found join servers s using (id) join tenants t on t.id = s.tenant_id
    order by s.id is distinct from ${asked.id}, lower(s.name), s.id limit ${limit}`.execute(db);
  return rows;
}

/** Addresses that servers hold now, from the first to the last. */
export async function searchAddresses(
  db: Queryable,
  scope: Scope,
  range: { first: string; last: string },
  limit: number,
): Promise<AddressHit[]> {
  const { rows } = await sql<AddressHit>`
    select host(a.address) as address, ${hit}
    from allocations a join servers s on s.id = a.server_id join tenants t on t.id = s.tenant_id
    where a.address >= ${range.first}::inet and a.address <= ${range.last}::inet and a.released_at is null
      and s.provisioning_state <> 'deleted' and ${owned(scope)}
    order by a.address, a.id limit ${limit}`.execute(db);
  return rows;
}
