import type { FastifyRequest } from 'fastify';

/** What makes a hypervisor's sensor one of this monitor; the token is good for one. */
export function enrolCommand(monitorUrl: string | null, request: FastifyRequest, token: string): string {
  const url = monitorUrl ?? `${request.protocol}://${request.host}`;
  return `SVC_MONITOR_URL=${url} SVC_SENSOR_ENROLMENT_TOKEN=${token} ./svc sensor run`;
}
