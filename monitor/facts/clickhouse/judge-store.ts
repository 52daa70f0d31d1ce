/**
 * Who counts: per site-minute and direction the vantage, and of its captures the strongest for each local address, and segment where
 * it is not unique (NET-2.2.5).
 *
 * Three reads of the facts: the vantages, the owners, of which there is one for each local address and minute, and what they counted.
 */
import { directionCode } from '../contract/codes.ts';
import type * as facts from '../contract/facts.ts';
import { nameOrder, type Scope, within } from './select-store.ts';
import { ch, type Fragment, number, plain, text } from './statement.ts';

export interface Judging extends Scope {
  /** Null: all. */
  direction: facts.Direction | null;
}

export const inDirection = (direction: facts.Direction | null): Fragment =>
  direction === null ? plain('1') : ch`direction = ${number(directionCode(direction), 'UInt8')}`;

export const ofKey = ({ name, protocol, serverPort }: facts.ApplicationKey): Fragment =>
  ch`name = ${text(name)} and protocol = ${number(protocol, 'UInt8')} and server_port = toInt32(${text(String(serverPort ?? -1))})`;

/** Facts that are not foreign. */
export const counted = (judging: Judging): Fragment =>
  ch`${within(judging)} and ${inDirection(judging.direction)} and not (${judging.foreign('local')})`;

/** A minute, direction and vantage as one number, which is looked up faster than three. */
const moment = 'toUInt64(minute) * 16 + direction * 4 + vantage';
/** Rows of the vantage that counts in their minute and direction; after `owning`. */
const isOwning = plain(`${moment} in (select ${moment} from owning)`);

/**
 * `owners`: of each minute, direction, local address and segment the capture that counts. `locals` is a condition over the table's
 * column `local`, where others are not asked for.
 *
 * The vantage comes first, because it is found by rows' numbers alone and leaves out most of what a second vantage saw. What has no
 * segment itself is of the only one that there was; of several, which is rare, it is left out.
 */
export const owners = (judging: Judging, locals: Fragment = plain('1')): Fragment => ch`owning as (
  select minute, direction, if(direction = 3, if(has_bridge or not is_uplink, 2, 1), if(has_uplink or not is_bridge, 1, 2)) as vantage
  from (select minute, direction, max(vantage = 1) as is_uplink, max(vantage = 1 and inbound_bytes + outbound_bytes > 0) as has_uplink,
      max(vantage = 2) as is_bridge, max(vantage = 2 and inbound_bytes + outbound_bytes > 0) as has_bridge
    from application_facts where ${counted(judging)} group by minute, direction)),
told_facts as (
  select minute, direction, local, capture_id, any(vantage) as of_vantage, max(toString(segment)) as own,
    (toUInt128(sum(inbound_bytes + outbound_bytes)) * 4294967296 + toUInt32(4294967295 - any(sensor_id))) * 4294967296
      + toUInt32(any(${nameOrder('application_facts', judging)})) as strength
  from application_facts where ${counted(judging)} and ${locals} and ${isOwning}
  group by minute, direction, local, capture_id),
told_locals as (
  select minute, direction, local, any(of_vantage) as vantage, argMax(capture_id, strength) as strongest, max(own) as last_segment,
    minIf(own, own != '') as only, groupArrayIf((own, strength, capture_id), own != '') as told
  from told_facts group by minute, direction, local),
owners as (
  select minute, direction, local, vantage, tupleElement(owner, 1) as segment, tupleElement(owner, 2) as capture_id
  from (select minute, direction, local, vantage, arrayJoin(if(only = last_segment, [(only, strongest)],
      arrayMap(s -> (s, tupleElement(arrayReverseSort(t -> tupleElement(t, 2), arrayFilter(t -> tupleElement(t, 1) = s, told))[1], 3)),
        arrayDistinct(arrayMap(t -> tupleElement(t, 1), told))))) as owner
    from told_locals))`;

const factColumns =
  plain(`minute, capture_id, sensor_id, vantage, direction, local, name, protocol, server_port, evidence,
  is_attributed, inbound_bytes as inbound, outbound_bytes as outbound, packets, last_sent_ms`);

/**
 * `judged`: the facts, each with whether its capture counts (`owns`) and its segment; after `owners`. `more` is a condition over
 * the table's columns.
 */
export const judged = (judging: Judging, more: Fragment = plain('1')): Fragment => ch`judged as (
  select f.*, o.capture_id > 0 as owns, if(owns, o.segment, f.own_segment) as segment
  from (select ${factColumns}, toString(segment) as own_segment
    from application_facts where ${counted(judging)} and ${more}) f
  left join owners o on o.minute = f.minute and o.direction = f.direction and o.local = f.local and o.capture_id = f.capture_id
    and o.vantage = f.vantage)`;

/** `owned_facts`: the same of captures that count alone. */
export const ownedFacts = (judging: Judging, more: Fragment = plain('1')): Fragment => ch`owned_facts as (
  select f.*, o.segment as segment
  from (select ${factColumns} from application_facts where ${counted(judging)} and ${more} and ${isOwning}) f
  inner join owners o on o.minute = f.minute and o.direction = f.direction and o.local = f.local and o.capture_id = f.capture_id)`;

/** `judged_pairs`: the same of pairs of the last 24 hours. */
export const judgedPairs = (judging: Judging, more: Fragment = plain('1')): Fragment => ch`judged_pairs as (
  select f.*, o.capture_id > 0 as owns, if(owns, o.segment, f.own_segment) as segment
  from (select minute, capture_id, sensor_id, vantage, direction, local, toString(name) as name, protocol, server_port, client, server,
      if(direction = 2, client_bytes, server_bytes) as inbound, if(direction = 2, server_bytes, client_bytes) as outbound, packets,
      toString(segment) as own_segment
    from endpoint_pairs where ${counted(judging)} and ${more}) f
  left join owners o on o.minute = f.minute and o.direction = f.direction and o.local = f.local and o.capture_id = f.capture_id
    and o.vantage = f.vantage)`;
