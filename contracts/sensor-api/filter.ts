/** Rules of the filter at a hypervisor's uplink: what of an attack on a server, or by one, is dropped there, or counted as what would be. */
import { type Static, Type } from 'typebox';
import { filterOf } from '../attack-classes.ts';
import { vectorPortsMax, vectorsMax } from './detection.ts';

/** Of one plan, and of one address. */
export const filterRulesMax = 256;
export const filterRulesOfAddress = 8;
export const packetBytesMax = 65_535;

const Flags = Type.Integer({ minimum: 0, maximum: 255 });
const Bytes = Type.Integer({ minimum: 0, maximum: packetBytesMax });
const Moment = Type.String({ description: 'RFC 3339, UTC.' });

/** What all packets of a rule have. */
export const PacketMatch = Type.Object({
  protocols: Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), {
    maxItems: vectorPortsMax,
    description: 'IP protocols; none: any.',
  }),
  source_ports: Type.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), {
    maxItems: vectorPortsMax,
    description: 'None: any. Later fragments of a datagram match, for they have no ports.',
  }),
  flags_set: Flags,
  flags_clear: Flags,
  only_fragments: Type.Boolean(),
  length_min: Bytes,
  length_max: Bytes,
});
export type PacketMatch = Static<typeof PacketMatch>;

export const PlanFilterRule = Type.Object({
  target: Type.String({ description: 'The attacked address; of an outbound attack the attacking one.' }),
  class: Type.String({ description: 'Of the vector that it is for.' }),
  match: PacketMatch,
  began_at: Type.String({
    description: 'RFC 3339, UTC. What pairs of addresses carry that were established before passes.',
  }),
  drops_at: Type.Union([Moment, Type.Null()], {
    description: 'It counts until then; null: it drops nothing.',
  }),
  ends_at: Moment,
});
export type PlanFilterRule = Static<typeof PlanFilterRule>;

/** A vector, of an attack on an address. */
export interface FilteredVector {
  class: string;
  ports: readonly number[];
  protocols?: readonly number[];
}

/** The vectors of an attack that can be told from other traffic, with what their packets have; without any that of its class. */
export function matchesOf(
  attack: { class: string; vectors: readonly FilteredVector[] },
  target: string,
): { class: string; match: PacketMatch }[] {
  const usable = attack.vectors.filter((one) => filterOf(one.class, one.protocols));
  const used = usable.length > 0 ? usable : [{ class: attack.class, ports: [] }];
  return used.slice(0, vectorsMax).flatMap((vector) => {
    const match = matchOf(vector, target.includes(':'));
    return match ? [{ class: vector.class, match }] : [];
  });
}

function matchOf(
  { class: name, ports, protocols = [] }: FilteredVector,
  isIpv6: boolean,
): PacketMatch | null {
  const filter = filterOf(name, protocols);
  if (filter === null) return null;
  const { protocol, ofVector, flags, isFragment = false } = filter;
  const own = protocol ? [protocol[isIpv6 ? 1 : 0]] : [];
  return {
    protocols: (ofVector === 'protocols' ? [...protocols] : own).slice(0, vectorPortsMax),
    source_ports: ofVector === 'source_ports' ? ports.slice(0, vectorPortsMax) : [],
    ...{ flags_set: flags?.set ?? 0, flags_clear: flags?.clear ?? 0, only_fragments: isFragment },
    ...{ length_min: 0, length_max: packetBytesMax },
  };
}
