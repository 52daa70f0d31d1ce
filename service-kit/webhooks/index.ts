/**
 * Outgoing webhooks, for whichever program sends them: Standard Webhooks signatures, and one attempt that can't be used
 * to look into our network. What is sent, when, and how often again is the program's own.
 */
export {
  type Answer,
  type DeliveryRequest,
  formatSecret,
  mintSecret,
  type Outcome,
  postDelivery,
  type Resolve,
  resolveByDns,
  signDelivery,
} from './post-delivery.ts';
export { invalidWebhook, parseEndpointUrl, type TargetRules } from './target.ts';
