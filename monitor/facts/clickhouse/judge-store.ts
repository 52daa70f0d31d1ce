/**
 * Who counts: per site-minute and direction the vantage, and of its captures the strongest for each local address, and segment where
 * it is not unique (NET-2.2.5).
 *
 * Two reads of the facts: one finds the owners, of which there is one for each local address and minute, the other adds up what
 * they counted.
 */
import { directionCode } from '../contract/codes.ts';
import type * as facts from '../contract/facts.ts';
import { type Scope, within } from './select-store.ts';
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

/** One capture's facts of a minute, direction and local address. `own` is its segment. */
const toldType = `Tuple(id UInt32, sensor UInt32, capture String, vantage UInt8, bytes Int64, own String)`;

/** `owners`: of each minute, direction, local address and segment the capture that counts. */
export const owners = (judging: Judging): Fragment => ch`told_facts as (
  select minute, direction, local, capture_id, vantage, any(sensor_id) as of_sensor, toString(any(capture)) as of_capture,
    toInt64(sum(inbound_bytes + outbound_bytes)) as bytes, max(toString(segment)) as own
  from application_facts where ${counted(judging)} group by minute, direction, local, capture_id, vantage),
told_locals as (
  select minute, direction, local, groupArray(cast(tuple(capture_id, of_sensor, of_capture, vantage, bytes, own),
      ${plain(`'${toldType}'`)})) as told,
    max(vantage = 1) as is_uplink, max(vantage = 1 and bytes > 0) as has_uplink, max(vantage = 2) as is_bridge,
    max(vantage = 2 and bytes > 0) as has_bridge
  from told_facts group by minute, direction, local),
owners as (
  select minute, direction, local, segment, winner.id as capture_id, winner.vantage as vantage
  from (select minute, direction, local, segment,
      arraySort(c -> (-c.bytes, c.sensor, c.capture), arrayFilter(c -> if(c.own != '', c.own, only) = segment, usable))[1] as winner
    from (select minute, direction, local, usable, only,
        arrayJoin(arrayDistinct(arrayMap(c -> if(c.own != '', c.own, only), usable))) as segment
      from (select minute, direction, local, eligible, arrayDistinct(arrayFilter(s -> s != '', arrayMap(c -> c.own, eligible))) as segments,
          if(empty(segments), '', segments[1]) as only, arrayFilter(c -> c.own != '' or length(segments) < 2, eligible) as usable
        from (select minute, direction, local, arrayFilter(c -> c.vantage = owner, told) as eligible
          from (select minute, direction, local, told,
              if(direction = 3,
                if(max(has_bridge) over of_minute = 1 or max(is_uplink) over of_minute = 0, 2, 1),
                if(max(has_uplink) over of_minute = 1 or max(is_bridge) over of_minute = 0, 1, 2)) as owner
            from told_locals window of_minute as (partition by minute, direction)))))))`;

/**
 * `judged`: the facts, each with whether its capture counts (`owns`) and its segment; after `owners`. `more` is a condition over
 * the table's columns.
 */
export const judged = (judging: Judging, more: Fragment = plain('1')): Fragment => ch`judged as (
  select f.*, o.capture_id > 0 as owns, if(owns, o.segment, f.own_segment) as segment
  from (select minute, capture_id, sensor_id, vantage, direction, local, toString(name) as name, protocol, server_port, evidence,
      is_attributed, inbound_bytes as inbound, outbound_bytes as outbound, packets, last_sent_ms, toString(segment) as own_segment
    from application_facts where ${counted(judging)} and ${more}) f
  left join owners o on o.minute = f.minute and o.direction = f.direction and o.local = f.local and o.capture_id = f.capture_id
    and o.vantage = f.vantage)`;

/** `judged_pairs`: the same of pairs of the last 24 hours. */
export const judgedPairs = (judging: Judging, more: Fragment = plain('1')): Fragment => ch`judged_pairs as (
  select f.*, o.capture_id > 0 as owns, if(owns, o.segment, f.own_segment) as segment
  from (select minute, capture_id, sensor_id, vantage, direction, local, toString(name) as name, protocol, server_port, client, server,
      if(direction = 2, client_bytes, server_bytes) as inbound, if(direction = 2, server_bytes, client_bytes) as outbound, packets,
      toString(segment) as own_segment
    from endpoint_pairs where ${counted(judging)} and ${more}) f
  left join owners o on o.minute = f.minute and o.direction = f.direction and o.local = f.local and o.capture_id = f.capture_id
    and o.vantage = f.vantage)`;
