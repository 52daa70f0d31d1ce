/**
 * A process that speaks Stripe's wire format and keeps its own books, with the ways in which a gateway lets one down.
 *
 * Run as `fake-stripe.ts`; it prints its port, and takes no key but `sk_test_x`. Beside Stripe's own paths it has `POST /testing/plan` for how the charge
 * of the next orders behaves, `GET /testing/books` for what it holds to be true, `GET /testing/heard` for all that it was told, and `POST /testing/late` to let the
 * late ones succeed now. Behaviour belongs to the intent, by its `charge_key` or the plan at its creation.
 */
import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';

export const behaviours = [
  'success',
  'decline',
  'timeout before',
  'timeout after',
  'late success',
  'duplicate callback',
  'error after charge',
  'reset',
  'in use',
  'callbacks out of order',
  'wants the customer',
] as const;
export type Behaviour = (typeof behaviours)[number];

export interface Plan {
  /** The tenant whose charges behave so; all tenants when absent. */
  tenantId?: number;
  behaviour: Behaviour;
  /** Ends this process while it waits for the confirmation, before or after the money was taken. */
  kill?: { pid: number; when: 'before' | 'after' };
  callbackUrl?: string;
  callbackSecret?: string;
}

export interface GatewayIntent {
  id: string;
  key: string;
  amount: number;
  status: string;
  captures: number;
  refunds: number;
}

interface Intent extends GatewayIntent {
  plan: Plan;
  customer: string | null;
  inUse: number;
}

const intents = new Map<string, Intent>();
/** Answers by idempotency key, as Stripe keeps them. */
const answers = new Map<string, { status: number; body: object; text: string }>();
/** Those that a customer holds: a detached card keeps its face and can't be charged. */
const cards = new Set<string>();
const cardFace = { brand: 'visa', last4: '4242', exp_month: 12, exp_year: 2099 };
const sessions = new Map<string, { customer: string; card: string }>();
let plan: Plan = { behaviour: 'success' };
/** Plans for the charges of one tenant each. */
const plans = new Map<string, Plan>();
let made = 0;
/** Everything that was ever said to it. */
const heard: string[] = [];

function id(prefix: string): string {
  made += 1;
  return `${prefix}_${made.toString(36)}${randomBytes(8).toString('hex')}`;
}

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const text = Buffer.concat(pieces).toString();
  heard.push(`${request.method} ${request.url}\n${text}`);
  const path = request.url!.split('?')[0]!;
  if (path.startsWith('/testing/')) return testing(path, text, response);
  if (request.headers.authorization !== 'Bearer sk_test_x')
    return send(
      response,
      401,
      problem(401, 'invalid_request_error', '', 'Invalid API Key provided: sk_test_****').body,
    );
  const form = new URLSearchParams(text);
  const empty = [...form].find(([, value]) => value === '');
  if (empty)
    return send(
      response,
      400,
      problem(
        400,
        'invalid_request_error',
        'parameter_invalid_empty',
        `You passed an empty string for '${empty[0]}'.`,
      ).body,
    );
  const key = request.headers['idempotency-key'] as string | undefined;
  const known = key === undefined ? undefined : answers.get(key);
  if (known && known.text !== text)
    return send(
      response,
      400,
      problem(400, 'idempotency_error', '', 'the key was used with other words').body,
    );
  if (known) return send(response, known.status, known.body, { 'idempotent-replayed': 'true' });
  const answer = await route(request.method!, path, form);
  if (answer === 'hang') return;
  if (answer === 'reset') return void request.socket.resetAndDestroy();
  // Stripe keeps what a call came to, errors of the card included; a conflict was never carried out.
  if (key !== undefined && answer.status !== 409) answers.set(key, { ...(answer.kept ?? answer), text });
  send(response, answer.status, answer.body);
}

type Answer = { status: number; body: object; kept?: { status: number; body: object } } | 'hang' | 'reset';

async function route(method: string, path: string, form: URLSearchParams): Promise<Answer> {
  const [, , collection, name, verb] = path.split('/');
  if (collection === 'payment_intents' && method === 'POST' && name === undefined) return create(form);
  const intent = collection === 'payment_intents' ? intents.get(name!) : undefined;
  if (intent && method === 'GET') return read(intent);
  if (intent && verb === 'confirm') return confirm(intent, form.toString());
  if (intent && verb === 'cancel') return cancel(intent);
  if (collection === 'refunds') return refund(form.get('payment_intent')!);
  if (collection === 'customers') return { status: 200, body: { id: id('cus'), object: 'customer' } };
  if (collection === 'checkout') return checkout(method, path, form);
  if (collection === 'payment_methods') {
    cards.delete(name!);
    return { status: 200, body: { id: name, object: 'payment_method' } };
  }
  return problem(404, 'invalid_request_error', 'resource_missing', `nothing at ${path}`);
}

function create(form: URLSearchParams): Answer {
  const chosen = plans.get(form.get('metadata[tenant_id]') ?? '') ?? plan;
  const intent: Intent = {
    id: id('pi'),
    key: form.get('metadata[charge_key]')!,
    amount: Number(form.get('amount')),
    status: 'requires_confirmation',
    captures: 0,
    refunds: 0,
    customer: form.get('customer'),
    plan: chosen,
    inUse: chosen.behaviour === 'in use' ? 2 : 0,
  };
  intents.set(intent.id, intent);
  return { status: 200, body: show(intent) };
}

function read(intent: Intent): Answer {
  // A line on which an answer was lost is no better for the question after it.
  if (isLost(intent) && !intent.plan.kill) return 'hang';
  return { status: 200, body: show(intent) };
}

const lostAsked = new Map<string, number>();
/** The first question after a lost answer is lost too, and its repetition; reconciliation, later, is answered. */
function isLost(intent: Intent): boolean {
  if (!['timeout before', 'timeout after'].includes(intent.plan.behaviour)) return false;
  const asked = lostAsked.get(intent.id) ?? 0;
  lostAsked.set(intent.id, asked + 1);
  return asked < 2;
}

async function confirm(intent: Intent, text: string): Promise<Answer> {
  const { behaviour, kill } = intent.plan;
  if (kill?.when === 'before') process.kill(kill.pid, 'SIGKILL');
  if (intent.status === 'canceled')
    return problem(400, 'invalid_request_error', 'payment_intent_unexpected_state', 'it was canceled');
  if (intent.inUse > 0) {
    intent.inUse -= 1;
    return problem(409, 'idempotency_error', 'idempotency_key_in_use', 'another request is in progress');
  }
  if (behaviour === 'timeout before') return 'hang';
  if (behaviour === 'decline') {
    intent.status = 'requires_payment_method';
    if (kill?.when === 'after') process.kill(kill.pid, 'SIGKILL');
    return problem(402, 'card_error', 'card_declined', 'Your card was declined.', 'insufficient_funds');
  }
  if (behaviour === 'late success') {
    intent.status = 'processing';
    if (kill?.when === 'after') process.kill(kill.pid, 'SIGKILL');
    return { status: 200, body: show(intent) };
  }
  if (behaviour === 'wants the customer') {
    intent.status = 'requires_action';
    return { status: 200, body: show(intent) };
  }
  if (intent.status !== 'succeeded') capture(intent);
  if (kill?.when === 'after') process.kill(kill.pid, 'SIGKILL');
  const done = { status: 200, body: show(intent) };
  switch (behaviour) {
    case 'timeout after':
      return 'hang';
    case 'error after charge':
      return { status: 500, body: { error: { type: 'api_error', message: 'oops' } }, kept: done };
    case 'reset':
      answers.set(`${intent.key}:take`, { ...done, text });
      return 'reset';
    case 'duplicate callback':
      await callBack(intent, ['payment_intent.succeeded', 'payment_intent.succeeded']);
      return done;
    case 'callbacks out of order':
      await callBack(intent, [
        'payment_intent.succeeded',
        'payment_intent.processing',
        'payment_intent.created',
      ]);
      return done;
    default:
      return done;
  }
}

function capture(intent: Intent): void {
  intent.captures += 1;
  intent.status = 'succeeded';
}

function cancel(intent: Intent): Answer {
  if (['succeeded', 'processing', 'canceled'].includes(intent.status))
    return problem(400, 'invalid_request_error', 'payment_intent_unexpected_state', `it is ${intent.status}`);
  intent.status = 'canceled';
  return { status: 200, body: show(intent) };
}

function refund(name: string): Answer {
  const intent = intents.get(name);
  if (intent?.status !== 'succeeded')
    return problem(400, 'invalid_request_error', 'charge_disputed', 'nothing to refund');
  if (intent.refunds > 0)
    return problem(400, 'invalid_request_error', 'charge_already_refunded', 'refunded before');
  intent.refunds += 1;
  return { status: 200, body: { id: id('re'), object: 'refund', status: 'succeeded' } };
}

function checkout(method: string, path: string, form: URLSearchParams): Answer {
  if (method === 'POST') {
    const session = id('cs_test');
    const card = id('pm');
    cards.add(card);
    sessions.set(session, { customer: form.get('customer')!, card });
    const url = form.get('success_url')!.replace('{CHECKOUT_SESSION_ID}', session);
    return { status: 200, body: { id: session, object: 'checkout.session', url, status: 'open' } };
  }
  const name = path.split('/').at(-1)!;
  const session = sessions.get(name);
  if (!session) return problem(404, 'invalid_request_error', 'resource_missing', 'no such session');
  const method_ = {
    id: session.card,
    object: 'payment_method',
    customer: cards.has(session.card) ? session.customer : null,
    card: cardFace,
  };
  return {
    status: 200,
    body: {
      id: name,
      object: 'checkout.session',
      status: 'complete',
      customer: session.customer,
      setup_intent: { id: id('seti'), object: 'setup_intent', payment_method: method_ },
    },
  };
}

/** Signed as Stripe signs: the time and the raw body, with the endpoint's secret. */
export function signCallback(body: string, secret: string, atSeconds: number): string {
  const mac = createHmac('sha256', secret).update(`${atSeconds}.${body}`).digest('hex');
  return `t=${atSeconds},v1=${mac}`;
}

async function callBack(intent: Intent, types: readonly string[]): Promise<void> {
  const { callbackUrl, callbackSecret } = intent.plan;
  if (!callbackUrl || !callbackSecret) return;
  for (const type of types) {
    const body = JSON.stringify({ id: id('evt'), object: 'event', type, data: { object: show(intent) } });
    const signature = signCallback(body, callbackSecret, Math.floor(Date.now() / 1000));
    const headers = { 'content-type': 'application/json', 'stripe-signature': signature };
    await fetch(callbackUrl, { method: 'POST', headers, body }).catch(() => {});
  }
}

function show(intent: Intent): object {
  return {
    id: intent.id,
    object: 'payment_intent',
    amount: intent.amount,
    currency: 'usd',
    customer: intent.customer,
    status: intent.status,
    last_payment_error: null,
    metadata: { charge_key: intent.key },
  };
}

function problem(status: number, type: string, code: string, message: string, declineCode?: string) {
  const error = { type, code, message, ...(declineCode ? { decline_code: declineCode } : {}) };
  return { status, body: { error } };
}

function testing(path: string, text: string, response: ServerResponse): void {
  if (path === '/testing/plan') {
    const given = JSON.parse(text) as Plan;
    if (given.tenantId === undefined) plan = given;
    else plans.set(String(given.tenantId), given);
    send(response, 200, {});
    return;
  }
  if (path === '/testing/late') {
    for (const intent of intents.values()) if (intent.status === 'processing') capture(intent);
    send(response, 200, {});
    return;
  }
  if (path === '/testing/heard') {
    send(response, 200, heard);
    return;
  }
  const books = [...intents.values()].map(({ plan: _, customer: _c, inUse: _i, ...intent }) => intent);
  send(response, 200, books);
}

function send(response: ServerResponse, status: number, body: object, headers = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', 'request-id': id('req'), ...headers });
  response.end(JSON.stringify(body));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const server = createServer((request, response) => {
    handle(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1', () => {
    process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
  });
}
