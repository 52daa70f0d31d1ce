import type { FastifyRequest } from 'fastify';

/** The command that enrols a hypervisor's sensor with this one-time token. */
export function enrolCommand(monitorUrl: string | null, request: FastifyRequest, token: string): string {
  const url = monitorUrl ?? `${request.protocol}://${request.host}`;
  return `SVC_MONITOR_URL=${url} SVC_SENSOR_ENROLMENT_TOKEN=${token} ./svc sensor run`;
}
