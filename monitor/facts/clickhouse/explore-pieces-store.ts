/** The rows that a query over any dimensions sums, with a column for every dimension. */
import { directionCode } from '../contract/codes.ts';
import type { Exploration, ExploredDimension, ExploredFilter } from '../contract/exploration.ts';
import type { Direction } from '../contract/facts.ts';
import type { Sources } from './address-store.ts';
import { judgingOf } from './application-store.ts';
import { ownedAt } from './detail-store.ts';
import { judgedPairs, ownedFacts, owners } from './judge-store.ts';
import { youngPart } from './pair-store.ts';
import { placesMatch } from './prefix-match.ts';
import { hosts, strongest } from './select-store.ts';
import { ch, type Fragment, joined, numbers, plain, texts } from './statement.ts';
import { hexOf } from './verdict-store.ts';

/** An address as text. */
const addressText = (column: string) =>
  `if(length(${column}) = 4, IPv4NumToString(reinterpretAsUInt32(reverse(${column}))), IPv6NumToString(toFixedString(${column}, 16)))`;

/** Text of each dimension's value, null where there is none. */
const columns: Readonly<Record<ExploredDimension, string>> = {
  address: `if(local = '', null, concat(${addressText('local')}, if(segment = '', '', concat('%', segment))))`,
  device: `nullIf(device, '')`,
  application: 'name',
  peer: `if(peer = '', null, ${addressText('peer')})`,
  port: `if(port < 0, 'none', toString(port))`,
  transport: 'toString(protocol)',
  direction: `['outbound', 'inbound', 'internal', 'transit'][direction]`,
  sensor: 'toString(sensor)',
  scope: `if(vantage = 1, 'uplink', 'bridge')`,
  server: `if(l.found = 1, l.server, w.server)`,
  customer: `if(l.found = 1, l.customer, w.customer)`,
  country: 'n.country',
  as: 'n.of_as',
};

/** What each dimension's value is made of: fewer columns, and numbers where they are numbers. */
const sources: Readonly<Record<ExploredDimension, readonly string[]>> = {
  address: ['local', 'segment'],
  device: ['device'],
  application: ['name'],
  peer: ['peer'],
  port: ['port'],
  transport: ['protocol'],
  direction: ['direction'],
  sensor: ['sensor'],
  scope: ['vantage'],
  server: ['local', 'segment'],
  customer: ['local', 'segment'],
  country: ['peer'],
  as: ['peer'],
};

/** Columns of a piece that these dimensions are made of. */
export const sourceColumns = (by: readonly ExploredDimension[]): string[] => [
  ...new Set(by.flatMap((one) => sources[one])),
];

export const keyColumn = (dimension: ExploredDimension | undefined): Fragment =>
  plain(`cast(${dimension === undefined ? 'null' : columns[dimension]}, 'Nullable(String)')`);

/** A condition over a piece. Rows without a value match no value and are left in by "is not". */
export function conditionOf({ dimension, is, values }: ExploredFilter): Fragment {
  const matches = matchOf(dimension, values);
  return is ? matches : ch`not ${matches}`;
}

function matchOf(dimension: ExploredFilter['dimension'], values: readonly string[]): Fragment {
  switch (dimension) {
    case 'address':
      return ch`(local != '' and ${placesMatch(plain('local'), plain('segment'), values)})`;
    case 'peer':
      return ch`(peer != '' and ${placesMatch(plain('peer'), plain("''"), values)})`;
    case 'direction':
      return ch`(direction in ${numbers(
        values.map((one) => directionCode(one as Direction)),
        'UInt8',
      )})`;
    case 'device':
      return ch`(device != '' and device in ${texts(values)})`;
    case 'port': {
      const port = plain(columns.port);
      const isPort = ch`${port} in ${texts(values)}`;
      return values.some((one) => one.includes('/'))
        ? ch`(${isPort} or concat(toString(protocol), '/', ${port}) in ${texts(values)})`
        : ch`(${isPort})`;
    }
    default:
      return ch`(${plain(columns[dimension])} in ${texts(values)})`;
  }
}

const usesDimension = (asked: Exploration, dimension: ExploredDimension): boolean =>
  asked.by.includes(dimension) || asked.filters.some((one) => one.dimension === dimension);

/** `pieces`: everything of the source that passes the filters. */
export async function pieces(sources: Sources, asked: Exploration): Promise<Fragment> {
  const conditions = joined([plain('1'), ...asked.filters.map(conditionOf)], ' and ');
  return ch`${await basePieces(sources, asked)}, pieces as (select * from base where ${conditions})`;
}

async function basePieces(sources: Sources, asked: Exploration): Promise<Fragment> {
  const range = await judgingOf(sources, asked);
  const judging = asked.source === 'pairs' ? await youngPart(sources.db(), range) : range;
  if (asked.source === 'addresses')
    return ch`${hosts(judging, null)}, ${strongest},
    base as (
      select minute, address as local, segment, device_key as device, '' as name, 0 as port, 0 as protocol, 0 as direction,
        best_sensor as sensor, best_vantage as vantage, '' as peer, best_rx as inbound, best_tx as outbound, best_packets as packets,
        ${plain(asked.measure === 'packets' ? 'best_own_packets' : 'best_own_rx + best_own_tx')} as own_scans
      from strongest)`;
  const isOwned = usesDimension(asked, 'device');
  const isPairs = asked.source === 'pairs';
  const more = joined(pushedDown(asked), ' and ');
  const facts = isPairs ? judgedPairs(judging, more) : ownedFacts(judging, more);
  return ch`${owners(judging, joined(localsOf(asked), ' and '))}, ${facts}, ${isOwned ? ch`${ownedAt(judging)},` : plain('')}
    base as (
      select j.minute as minute, j.local as local, j.segment as segment, ${plain(isOwned ? 'o.device' : "''")} as device, name, server_port as port,
        protocol, j.direction as direction, sensor_id as sensor, vantage, ${plain(isPairs ? 'if(j.direction = 2, client, server)' : "''")} as peer,
        inbound, outbound, packets, 0 as own_scans
      from ${plain(isPairs ? 'judged_pairs' : 'owned_facts')} j
      ${plain(isOwned ? 'left join owned_at o on o.address = j.local and o.minute = j.minute and o.segment = j.segment' : '')}
      ${plain(isPairs ? 'where owns' : '')})`;
}

/** What the tables themselves can leave out. */
function pushedDown(asked: Exploration): Fragment[] {
  const names = asked.filters.filter((one) => one.is && one.dimension === 'application');
  return [...localsOf(asked), ...names.map(({ values }) => ch`name in ${texts(values)}`)];
}

/** Local addresses that are asked for. */
const localsOf = ({ filters }: Exploration): Fragment[] => [
  plain('1'),
  ...filters
    .filter((one) => one.is && one.dimension === 'address')
    .map(({ values }) => placesMatch(plain('local'), null, values)),
];

/** Joins for what `owners` and `networks` say, only where they are asked for. */
export function joinsOf({ by, owners: known, networks }: Exploration): Fragment {
  const joins: Fragment[] = [];
  if (by.some((one) => one === 'server' || one === 'customer')) {
    joins.push(
      ch`left join ${ownerTable(known.filter((one) => one.segment !== ''))} l on l.address = local and l.of_segment = segment`,
      ch`left join ${ownerTable(known.filter((one) => one.segment === ''))} w on w.address = local`,
    );
  }
  if (by.some((one) => one === 'country' || one === 'as'))
    joins.push(ch`left join (select unhex(g.1) as of_peer, if(g.2 = '', null, substring(g.2, 2)) as country,
        if(g.3 = '', null, substring(g.3, 2)) as of_as
      from (select arrayJoin(arrayZip(${texts(networks.map((one) => hexOf(one.peer)))}, ${optional(networks.map((one) => one.country))},
        ${optional(networks.map((one) => one.as))})) as g)) n on n.of_peer = peer`);
  return joined(joins, '\n');
}

/** Texts of which some may be absent: each with a mark before it. */
export const optional = (values: readonly (string | null)[]) =>
  texts(values.map((one) => (one === null ? '' : `=${one}`)));

const ownerTable = (known: Exploration['owners']): Fragment => ch`(
  select unhex(g.1) as address, g.2 as of_segment, if(g.3 = '', null, substring(g.3, 2)) as server,
    if(g.4 = '', null, substring(g.4, 2)) as customer, 1 as found
  from (select arrayJoin(arrayZip(${texts(known.map((one) => hexOf(one.address)))}, ${texts(known.map((one) => one.segment))},
    ${optional(known.map((one) => one.server))}, ${optional(known.map((one) => one.customer))})) as g))`;
