/** Bodies about observed traffic. */
import { type Static, Type } from 'typebox';
import { minuteReasons } from '#contracts/minute-reasons.ts';
import { keptText } from '#contracts/retention.ts';
import { Nullable, Strict } from '../scalars.ts';
import { type EndpointDeclaration, ok } from './endpoint.ts';
import { Id, momentPattern, OneOf, Optional, Titled } from './schema-kit.ts';

/** Lengths of the steps, in seconds. */
export const trafficSteps = {
  minute: 60,
  '5m': 300,
  '15m': 900,
  '30m': 1_800,
  hour: 3_600,
  '6h': 21_600,
  day: 86_400,
} as const;
export type TrafficStep = keyof typeof trafficSteps;
const stepNames = Object.keys(trafficSteps) as TrafficStep[];

/** Ranges by name: their length in seconds, and the step of a call that names none. */
export const trafficRanges = {
  '15m': { seconds: 900, step: 'minute' },
  '1h': { seconds: 3_600, step: 'minute' },
  '6h': { seconds: 21_600, step: 'minute' },
  '24h': { seconds: 86_400, step: '5m' },
  '7d': { seconds: 604_800, step: '30m' },
  '30d': { seconds: 2_592_000, step: 'hour' },
} as const satisfies Record<string, { seconds: number; step: TrafficStep }>;
const rangeNames = Object.keys(trafficRanges) as (keyof typeof trafficRanges)[];

/** Points of one answer: a day of minutes, and an hour for ranges that do not begin on a whole step. */
export const trafficPointsMax = 1_500;

const rate = (description: string, example: number) =>
  Nullable(Type.Number({ minimum: 0, description, examples: [example] }));
const bytes = (description: string, example: number) =>
  Nullable(Type.Integer({ minimum: 0, description, examples: [example] }));
const time = (description: string, example: string) =>
  Type.String({ format: 'date-time', description, examples: [example] });

const TrafficPoint = Titled('TrafficPoint', {
  timestamp: time('Start of the step.', '2026-11-22T10:00:00.000Z'),
  inbound_bps: rate(
    'Bits per second to the server. Of longer steps: the mean of the observed minutes.',
    18_400_000,
  ),
  outbound_bps: rate('Bits per second from the server.', 2_350_400),
  pps: rate('Packets per second, both directions together.', 2_641.5),
  inbound_bytes: bytes('Exact bytes of IP packets in the observed minutes.', 138_000_000),
  outbound_bytes: bytes('Exact bytes of IP packets in the observed minutes.', 17_628_000),
  provider_scan_inbound_bytes: bytes(
    'Part of `inbound_bytes` that port scans by the provider caused.',
    48_000,
  ),
  provider_scan_outbound_bytes: bytes(
    'Part of `outbound_bytes` that port scans by the provider caused.',
    41_000,
  ),
  dropped_inbound_bytes: bytes(
    'What the hypervisor dropped of an attack on the server: beside `inbound_bytes`, not a part of it. Null while views of protection are off, too.',
    0,
  ),
  dropped_outbound_bytes: bytes(
    'What the hypervisor dropped of an attack by the server: beside `outbound_bytes`, not a part of it.',
    0,
  ),
  dropped_inbound_packets: bytes('Packets of `dropped_inbound_bytes`.', 0),
  dropped_outbound_packets: bytes('Packets of `dropped_outbound_bytes`.', 0),
  expected_bps: rate(
    'Usual rate before this time, both directions together, without port scans by the provider. Null until enough minutes were observed.',
    19_875_200,
  ),
  expected_pps: rate('Usual packets per second.', 2_580),
  attack_bps: rate(
    'Part of the traffic that belongs to a detected attack. Zero only if all minutes and addresses of the step were checked completely; null: unknown.',
    0,
  ),
  attack_pps: rate('Packets per second of a detected attack.', 0),
  coverage: Nullable(
    Type.Number({
      minimum: 0,
      maximum: 1,
      description: 'Observed part of the observed minutes. Null: not known, for example after packet loss.',
      examples: [1],
    }),
  ),
  reason: Type.Union([OneOf(minuteReasons), Type.Null()], {
    description:
      'Why a value of the point is unknown, where the cause is known; of several causes one. `no_epoch` and `unassignable`: of the attack rates alone. `detector_incomplete`: of the attack rates or, where those are known, of the coverage.',
    examples: [null],
  }),
  observed_minutes: Type.Integer({
    minimum: 0,
    description: 'Minutes of the step with an observation.',
    examples: [1],
  }),
  observed_addresses: Type.Integer({
    minimum: 0,
    examples: [2],
    description:
      'Number of addresses that the rates contain; of longer steps: in the minute with the fewest.',
  }),
});
export type TrafficPoint = Static<typeof TrafficPoint>;

const TrafficApplication = Titled('TrafficApplication', {
  name: Type.String({ examples: ['example.com'] }),
  transport: Nullable(Type.String({ examples: ['tcp'] })),
  server_port: Nullable(Type.Integer({ examples: [443] })),
  inbound_bytes: Type.Integer({ minimum: 0, examples: [19_963_585] }),
  outbound_bytes: Type.Integer({ minimum: 0, examples: [8_963_613] }),
  last_sent_at: time('End of the newest minute in which the server sent for it.', '2026-11-22T10:01:00.000Z'),
});

export const ServerTraffic = Titled('ServerTraffic', {
  server_id: Id,
  from: time('Start of the first step.', '2026-11-22T10:00:00.000Z'),
  to: time('End of the last step.', '2026-11-22T10:01:00.000Z'),
  step: OneOf(stepNames),
  step_seconds: Type.Integer({ minimum: 1, description: 'Length of a step.', examples: [60] }),
  address: Type.Union([Type.String(), Type.Null()], {
    description: 'The only address in the rates; null: the sum of all addresses.',
    examples: [null],
  }),
  addresses: Type.Array(Type.String(), {
    description: 'Public addresses of the server, and former ones that were observed.',
    examples: [['203.0.113.10', '2001:db8:2a::10']],
  }),
  last_observed_at: Nullable(
    time('End of the newest observed minute in the range.', '2026-11-22T10:01:00.000Z'),
  ),
  points: Type.Array(TrafficPoint, { description: 'Oldest first, every step of the range.' }),
  applications: Type.Union([Type.Array(TrafficApplication), Type.Null()], {
    description:
      'Applications in the range, most bytes first: those for which the server itself sent bytes in the last 24 hours. Null: not requested, or the protection views of the server are off.',
    examples: [null],
  }),
  applications_from: Nullable(
    time(
      'Start of the applications: later than `from` if the range is longer than the last 24 hours.',
      '2026-11-22T10:00:00.000Z',
    ),
  ),
});
export type ServerTraffic = Static<typeof ServerTraffic>;

const Time = (description: string) => Type.String({ maxLength: 40, pattern: momentPattern, description });

export const TrafficQuery = Strict({
  ...Optional({
    range: OneOf(
      rangeNames,
      'The range up to now, instead of `from` and `to`. Longer ranges have longer steps by default.',
    ),
    applications: OneOf(['yes', 'no'], '`yes`: with the applications of the range. Default `no`.'),
    from: Time(
      'A time in RFC 3339 format with offset, such as `2026-11-22T10:00:00Z`. Default: 60 steps before `to`.',
    ),
    to: Time('A time in RFC 3339 format with offset, not included. Default, and for times to come: now.'),
    step: OneOf(stepNames, 'Default `minute`, and the step of `range`.'),
    address: Type.String({
      maxLength: 64,
      description: 'One of `addresses`. Default: the sum of all addresses.',
    }),
  }),
});
export type TrafficQuery = Static<typeof TrafficQuery>;

/** What was observed of a server's addresses. */
export const trafficEndpoints = [
  {
    id: 'readServerTraffic',
    call: 'GET /servers/{id}/traffic',
    summary: 'Read the traffic of a server',
    description: `Rates of the server’s public addresses, one point for each step of the range, oldest first. \`range\` is the time up to now. Without \`range\`, \`from\` and \`to\`: the last 60 steps. The range is extended to whole UTC steps and has at most 1,500 points. A step without observation is a point with null: its traffic is unknown, not zero. A minute arrives one to two minutes after its end; minutes are kept for ${keptText('traffic')}. \`applications=yes\` adds the applications of the range, for the last 24 hours at most. While the protection views of the server are off, \`applications\`, \`expected_bps\`, \`expected_pps\`, \`attack_bps\` and \`attack_pps\` are null.`,
    params: { id: 'server' },
    query: TrafficQuery,
    responses: ok(ServerTraffic, 'The points of the range.'),
  },
] as const satisfies readonly EndpointDeclaration[];
