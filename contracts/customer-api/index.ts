/**
 * The customer API, versions 1 and 2, as its callers see it: endpoints, bodies, errors, and the OpenAPI document.
 *
 * `endpoints.txt` and the generated half of the TypeScript client are made of it; tests compare them, so a change of the wire
 * is a change of a reviewed file. `SVC_UPDATE_SNAPSHOTS=1` writes `endpoints.txt` anew.
 */
export { commonErrors, type Endpoint, type ResourceKind } from './endpoint.ts';
export { type EndpointId, endpoints } from './endpoints.ts';
export { type ErrorKind, errorKinds } from './errors.ts';
export { buildOpenApi, listEndpoints } from './openapi.ts';
export { readOpenApi } from './openapi-parts.ts';
export { resourceOf } from './resources.ts';
export * as schemas from './schemas.ts';
export { testEvent, type WebhookEventType, webhookEvents } from './webhook-events.ts';
