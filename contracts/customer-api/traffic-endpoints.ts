import { keptText } from '../retention.ts';
import { type Endpoint, ok } from './endpoint.ts';
import { ServerTraffic, TrafficQuery } from './traffic-schemas.ts';

/** What was observed of a server's addresses. */
export const trafficEndpoints = [
  {
    id: 'readServerTraffic',
    method: 'GET',
    path: '/servers/{id}/traffic',
    versions: ['v2'],
    summary: 'Read the traffic of a server',
    description: `Rates of the server’s public addresses, one point for each step of the range, oldest first. \`range\` is the time up to now. Without \`range\`, \`from\` and \`to\`: the last 60 steps. The range is extended to whole UTC steps and has at most 1,500 points. A step without observation is a point with null: its traffic is unknown, not zero. A minute arrives one to two minutes after its end; minutes are kept for ${keptText('traffic')}. \`applications=yes\` adds the applications of the range, for the last 24 hours at most. While the protection views of the server are off, \`applications\`, \`expected_bps\`, \`expected_pps\`, \`attack_bps\` and \`attack_pps\` are null.`,
    params: { id: 'server' },
    query: TrafficQuery,
    selectsTenant: true,
    responses: ok(ServerTraffic, 'The points of the range.'),
    errors: ['invalid_fields', 'not_found'],
  },
] as const satisfies readonly Endpoint[];
