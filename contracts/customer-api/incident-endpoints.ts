import { keptText } from '../retention.ts';
import type { Endpoint } from './endpoint.ts';
import { IncidentList, ListIncidentsQuery } from './incident-schemas.ts';

/** Attacks on servers, or from them. */
export const incidentEndpoints = [
  {
    id: 'listServerIncidents',
    method: 'GET',
    path: '/servers/{id}/incidents',
    versions: ['v2'],
    summary: 'List attacks of a server',
    description: `Attacks on the addresses of the server, or from them, newest first. An attack is \`active\` until the sensor reports its end (\`recovered\`); \`stale\` means that the sensor reports nothing, so it is unknown whether the attack goes on. Attacks are kept for ${keptText('attacks')}. While the protection views of the server are off, the answer is a \`404\` (\`protect_disabled\`).`,
    params: { id: 'server' },
    query: ListIncidentsQuery,
    selectsTenant: true,
    responses: {
      200: { description: 'A page of attacks.', schema: IncidentList, headers: ['ETag', 'Link'] },
    },
    errors: ['invalid_cursor', 'invalid_fields', 'not_found', 'protect_disabled'],
  },
] as const satisfies readonly Endpoint[];
