/** The client of the customer API. It has no dependencies: Node 20 and newer, browsers and other runtimes with `fetch` run it. */
export { type AnswerInfo, answerOf, type Quota } from './answer.ts';
export type { CallOptions, ClientOptions } from './caller.ts';
export { Client, createClient, type WaitOptions } from './client.ts';
export * from './errors.ts';
export type * from './generated/api.ts';
export { verifyWebhook, WebhookVerificationError } from './webhooks.ts';
