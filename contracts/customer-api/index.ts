/**
 * The customer API, versions 1 and 2, as its callers see it: endpoints, bodies, errors, and the OpenAPI document.
 *
 * `openapi.json` and `endpoints.txt` are the published contract; a test compares them, so a change of the wire is a
 * change of a reviewed file. `SVC_UPDATE_SNAPSHOTS=1` writes them anew.
 */
export { commonErrors, type Endpoint, type ResourceKind } from './endpoint.ts';
export { type EndpointId, endpoints } from './endpoints.ts';
export { type ErrorKind, errorKinds } from './errors.ts';
export { buildOpenApi, listEndpoints } from './openapi.ts';
export { resourceOf } from './resources.ts';
export * as schemas from './schemas.ts';
export { testEvent, type WebhookEventType, webhookEvents } from './webhook-events.ts';
