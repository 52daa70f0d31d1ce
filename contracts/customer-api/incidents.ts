/** Bodies about attacks. Sources of an attack are in none of them. */
import { type Static, Type } from 'typebox';
import { type AttackClass, attackClasses } from '#contracts/attack-classes.ts';
import {
  actionKinds,
  attackDirections,
  type IncidentState,
  incidentCoverages,
  incidentSeverities,
  incidentStates,
} from '#contracts/incidents.ts';
import { keptText } from '#contracts/retention.ts';
import { Nullable, Strict } from '../scalars.ts';
import { type EndpointDeclaration, page } from './endpoint.ts';
import { Id, OneOf, PageOf, pageQuery, Titled } from './schema-kit.ts';

const time = (description: string, example: string) =>
  Type.String({ format: 'date-time', description, examples: [example] });
const number = (description: string, example: number) =>
  Type.Number({ minimum: 0, description, examples: [example] });
const count = (description: string, example: number) =>
  Type.Integer({ minimum: 0, description, examples: [example] });
const share = (description: string, example: number) =>
  Type.Number({ minimum: 0, maximum: 1, description, examples: [example] });

export const Incident = Titled('Incident', {
  id: Type.String({ format: 'uuid', examples: ['0b0e8c1a-5d7f-4c57-9a3e-2f1d6b8c4e90'] }),
  server_id: Id,
  address: Type.String({ description: 'Address of the server that is attacked, or that attacks.' }),
  direction: OneOf(attackDirections, '`outbound`: the server sends the attack.'),
  class: Type.Unsafe<AttackClass>({
    type: 'string',
    enum: [...attackClasses],
    description:
      'The largest part of the attack. `high_volume`: traffic above the threshold without a known pattern.',
    examples: ['syn_flood'],
  }),
  severity: OneOf(incidentSeverities, '`info`: unusual traffic that is not judged as an attack.'),
  state: Type.Unsafe<IncidentState>({
    type: 'string',
    enum: [...incidentStates],
    description: '`stale`: the sensor reports nothing since `last_observed_at`.',
    examples: ['recovered'],
  }),
  drill: Type.Boolean({
    description: 'True: started by our operators as a test, without real traffic.',
    examples: [false],
  }),
  started_at: time('First second of the attack.', '2026-11-22T10:02:11.000Z'),
  detected_at: time('Time of the decision.', '2026-11-22T10:02:13.000Z'),
  last_observed_at: time('Newest observation of the attack.', '2026-11-22T10:04:40.000Z'),
  recovered_at: Nullable(time('Reported end; null before it.', '2026-11-22T10:05:40.000Z')),
  current: Type.Union(
    [
      Type.Object({
        bps: number('Bits per second.', 12_000_000),
        pps: number('Packets per second.', 25_000),
      }),
      Type.Null(),
    ],
    { description: 'Rates now. Null: unknown, or over.', examples: [null] },
  ),
  peak: Type.Object({
    bps: number('Bits per second.', 14_000_000),
    bps_at: time('Time of `bps`.', '2026-11-22T10:03:02.000Z'),
    pps: number('Packets per second.', 31_000),
    pps_at: time('Time of `pps`.', '2026-11-22T10:03:04.000Z'),
  }),
  totals: Type.Object({
    bytes: count('Bytes of the attack so far.', 212_000_000),
    packets: count('Packets of the attack so far.', 3_530_000),
  }),
  coverage: OneOf(
    incidentCoverages,
    '`partial`: part of the attack was not observed; rates and totals are lower bounds.',
  ),
  vectors: Type.Array(
    Type.Object({
      class: OneOf(attackClasses),
      packets_share: share('Part of the packets.', 0.97),
      bytes_share: share('Part of the bytes.', 0.95),
      ports: Type.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), {
        description: 'Most frequent ports of the server; of `amplification` those of the senders.',
        examples: [[443]],
      }),
      source_ports: Type.Array(Type.Integer({ minimum: 0, maximum: 65_535 }), {
        description: 'Most frequent ports of the senders of a `udp_flood`.',
        examples: [[]],
      }),
      protocols: Type.Array(Type.Integer({ minimum: 0, maximum: 255 }), {
        description: 'IP protocols of a `protocol_flood`, such as 47 (GRE).',
        examples: [[]],
      }),
      started_at: Nullable(time('Its first second; null: unknown.', '2026-11-22T10:02:11.000Z')),
      last_observed_at: Nullable(time('Its last second so far; null: unknown.', '2026-11-22T10:04:40.000Z')),
    }),
    { description: 'Parts of the attack, strongest first, at most three.' },
  ),
  actions: Type.Array(
    Type.Object({
      kind: OneOf(
        actionKinds,
        '`blackholed`: all traffic to the address is dropped in the network. `filtered`: attack traffic is dropped in the network. `dropped`: it is dropped at the hypervisor; traffic with addresses that were known before passes.',
      ),
      at: time('Time of the measure.', '2026-11-22T10:02:14.000Z'),
      ended_at: Nullable(time('End of the measure.', '2026-11-22T10:05:41.000Z')),
      dropped_pps: Nullable(
        number('Of `dropped`: packets per second now. Null: another kind, over, or unknown.', 24_870),
      ),
    }),
    { description: 'Measures against the attack.' },
  ),
});
export type Incident = Static<typeof Incident>;

export const IncidentList = PageOf('IncidentList', 'incidents', Incident);

const oneState = `(${incidentStates.join('|')})`;

export const ListIncidentsQuery = Strict({
  state: Type.Optional(
    Type.String({
      maxLength: 60,
      pattern: `^${oneState}( ?, ?${oneState})*$`,
      description: 'One or more of `active`, `stale`, `recovered`, separated by commas.',
    }),
  ),
  severity: Type.Optional(OneOf(incidentSeverities, 'Default: both.')),
  ...pageQuery(50).properties,
});
export type ListIncidentsQuery = Static<typeof ListIncidentsQuery>;

/** Attacks on servers, or from them. */
export const incidentEndpoints = [
  {
    id: 'listServerIncidents',
    call: 'GET /servers/{id}/incidents',
    summary: 'List attacks of a server',
    description: `Attacks on the addresses of the server, or from them, newest first. An attack is \`active\` until the sensor reports its end (\`recovered\`); \`stale\` means that the sensor reports nothing, so it is unknown whether the attack goes on. Attacks are kept for ${keptText('attacks')}. While the protection views of the server are off, the answer is a \`404\` (\`protect_disabled\`).`,
    params: { id: 'server' },
    query: ListIncidentsQuery,
    responses: page(IncidentList, 'A page of attacks.'),
    errors: ['protect_disabled'],
  },
] as const satisfies readonly EndpointDeclaration[];
