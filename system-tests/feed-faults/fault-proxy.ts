/**
 * Stands between the monitor and operations and does to deliveries what networks and busy servers do. Of what the monitor
 * reads, the lists of scan requests may come from a replica that is behind; and now and then operations is away for everything.
 */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export const deliveryFaults = [
  'never_arrives',
  'receipt_lost',
  'sent_twice',
  'arrives_late',
  'cut',
  'server_error',
  'receipt_damaged',
] as const;
export type DeliveryFault = (typeof deliveryFaults)[number];

/** Faults of a receiver that a proof plants, to verify that it notices them. */
export const receiverPlants = [
  'acknowledged_without_storing',
  'old_delivery_wins',
  'values_changed',
] as const;
export type ReceiverPlant = (typeof receiverPlants)[number];

interface Delivery {
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export interface FaultProxy extends AsyncDisposable {
  readonly url: string;
  /** Faults so far, by path. */
  readonly suffered: ReadonlyMap<string, number>;
  /** Requests whose results were sent, and which no list has named since `forgetConfirmed`. */
  readonly unconfirmed: readonly string[];
  /** The connection has changed: requests are to be confirmed again (NET-2.7.9). */
  forgetConfirmed(): void;
  /** Without faults deliveries pass, and what was late arrives. */
  setFaulty(isFaulty: boolean): Promise<void>;
}

/** Most deliveries that are on their way for long. */
const lateMax = 3;

/** Lists of scan requests that a replica may still answer with. */
const listsKept = 20;
/** Most requests that fail one after the other while operations is away. */
const awayMax = 12;
const listPath = '/protect/scan-requests/';
const scansPath = '/protect/port-scans/';

interface WayOptions {
  target: string;
  /** Below this number, from 0. */
  random: (below: number) => number;
  /** Others than those of a receiver are planted elsewhere. */
  plant: string | null;
}

export async function startFaultProxy(options: WayOptions): Promise<FaultProxy> {
  const way = new FaultyWay(options);
  const server = createServer((request, response) => {
    way.answer(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    suffered: way.suffered,
    unconfirmed: way.unconfirmed,
    forgetConfirmed: () => way.confirmed.clear(),
    setFaulty: (isFaulty) => way.setFaulty(isFaulty),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

class FaultyWay {
  readonly suffered = new Map<string, number>();
  readonly unconfirmed: string[] = [];
  readonly confirmed = new Set<string>();
  readonly #lists: { path: string; body: string }[] = [];
  #awayFor = 0;
  readonly #options: WayOptions;
  readonly #late: Delivery[] = [];
  #isFaulty = true;

  constructor(options: WayOptions) {
    this.#options = options;
  }

  async setFaulty(isFaulty: boolean): Promise<void> {
    this.#isFaulty = isFaulty;
    if (!isFaulty) await this.#deliverLate();
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { random, plant, target } = this.#options;
    const delivery = { path: request.url!, headers: request.headers, body: await buffer(request) };
    if (this.#isAway()) return void response.destroy();
    if (request.method !== 'POST') {
      const { authorization = '' } = request.headers;
      const answer = await fetch(target + delivery.path, { headers: { authorization } });
      return send(
        response,
        delivery.path.includes(listPath) ? await this.#list(delivery.path, answer) : answer,
      );
    }
    if (delivery.path.includes(scansPath)) this.#checkConfirmed(delivery);
    if (this.#late.length >= lateMax || (this.#late.length > 0 && random(3) === 0)) await this.#deliverLate();
    if (!this.#isFaulty || random(10) < 3) return this.#pass(delivery, response);
    if (plant === 'acknowledged_without_storing' && random(10) === 0)
      return send(response, Response.json(acknowledge(delivery)));
    this.suffered.set(delivery.path, (this.suffered.get(delivery.path) ?? 0) + 1);
    return this.#suffer(deliveryFaults[random(deliveryFaults.length)]!, delivery, response);
  }

  #isAway(): boolean {
    const { random } = this.#options;
    if (!this.#isFaulty) this.#awayFor = 0;
    else if (this.#awayFor > 0) this.#awayFor -= 1;
    else if (random(80) === 0) this.#awayFor = 1 + random(awayMax);
    return this.#awayFor > 0;
  }

  /** A list of scan requests, perhaps as it was a while ago. */
  async #list(path: string, answer: Response): Promise<Response> {
    const { random } = this.#options;
    if (!answer.ok) return answer;
    let body = await answer.text();
    const older = this.#lists.filter((one) => one.path === path);
    if (this.#isFaulty && older.length > 0 && random(5) === 0) body = older[random(older.length)]!.body;
    else this.#lists.push({ path, body });
    if (this.#lists.length > listsKept) this.#lists.shift();
    for (const { id } of (JSON.parse(body) as { requests: { id: string }[] }).requests)
      this.confirmed.add(id);
    return new Response(body);
  }

  #checkConfirmed({ body }: Delivery): void {
    for (const { request_id: id } of (JSON.parse(body.toString()) as Content).results ?? [])
      if (id !== null && !this.confirmed.has(id)) this.unconfirmed.push(id);
  }

  #forward({ path, headers, body }: Delivery): Promise<Response> {
    const { authorization = '', 'content-type': type = 'application/json' } = headers;
    return fetch(this.#options.target + path, {
      method: 'POST',
      headers: { authorization, 'content-type': type },
      body: new Uint8Array(body),
    });
  }

  async #deliverLate(): Promise<void> {
    const { plant } = this.#options;
    for (const delivery of this.#late.splice(0))
      await drain(this.#forward(plant === 'old_delivery_wins' ? asNew(delivery) : delivery));
  }

  async #pass(delivery: Delivery, response: ServerResponse): Promise<void> {
    const { plant, random } = this.#options;
    const isChanged = plant === 'values_changed' && random(20) === 0;
    return send(response, await this.#forward(isChanged ? changed(delivery) : delivery));
  }

  async #suffer(fault: DeliveryFault, delivery: Delivery, response: ServerResponse): Promise<void> {
    const { random } = this.#options;
    switch (fault) {
      case 'never_arrives':
        break;
      case 'receipt_lost':
        await drain(this.#forward(delivery));
        break;
      case 'sent_twice':
        await drain(this.#forward(delivery));
        return this.#pass(delivery, response);
      case 'arrives_late':
        this.#late.push(delivery);
        break;
      case 'cut': {
        const body = delivery.body.subarray(0, random(delivery.body.length));
        await drain(this.#forward({ ...delivery, body }));
        break;
      }
      case 'server_error': {
        const status = [500, 502, 503, 429][random(4)]!;
        return send(response, new Response('<h1>not now</h1>', { status }));
      }
      case 'receipt_damaged': {
        const receipt = await (await this.#forward(delivery)).arrayBuffer();
        return send(response, new Response(receipt.slice(0, random(receipt.byteLength))));
      }
    }
    response.destroy();
  }
}

async function send(response: ServerResponse, answer: Response): Promise<void> {
  const body = Buffer.from(await answer.arrayBuffer());
  response.writeHead(answer.status, { 'content-type': 'application/json' });
  response.end(body);
}

/** Reads an answer that is told to no program. */
async function drain(answer: Promise<Response>): Promise<void> {
  await (await answer).arrayBuffer();
}

interface Content {
  targets?: { id: number; series: { inbound_bps: number | null }[] }[];
  incidents?: { id: string; revision: number; peak: { pps: number } }[];
  results?: { scan_id: string; request_id: string | null; state: string }[];
  updates?: { id: string }[];
  projections?: {
    allocation_id: number;
    scan_id: string;
    checked_at: string;
    services: { version: string | null }[];
  }[];
}

function rewrite(delivery: Delivery, change: (content: Content) => void): Delivery {
  const content = JSON.parse(delivery.body.toString()) as Content;
  change(content);
  return { ...delivery, body: Buffer.from(JSON.stringify(content)) };
}

/** What a receiver would answer that forgets what it got. */
function acknowledge({ body }: Delivery): object {
  const { targets, incidents, results, updates, projections } = JSON.parse(body.toString()) as Content;
  if (targets) return { receipts: targets.map(({ id }) => ({ id, receipt: 'accepted' })) };
  if (results) return { receipts: results.map(({ scan_id }) => ({ scan_id, receipt: 'accepted' })) };
  if (projections)
    return {
      acknowledgements: projections.map(({ allocation_id, scan_id }) => ({
        ...{ allocation_id, scan_id, outcome: 'accepted' },
      })),
    };
  if (updates) return { outcomes: updates.map(({ id }) => ({ id, outcome: 'accepted' })) };
  return { outcomes: incidents!.map(({ id }) => ({ id, outcome: 'applied', allocation_id: null })) };
}

/** As if the receiver went by the order of arrival. */
function asNew(delivery: Delivery): Delivery {
  return rewrite(delivery, ({ incidents = [], projections = [] }) => {
    for (const incident of incidents) incident.revision += 1_000;
    for (const one of projections)
      one.checked_at = new Date(Date.parse(one.checked_at) + 60_000).toISOString();
  });
}

function changed(delivery: Delivery): Delivery {
  return rewrite(delivery, ({ targets = [], incidents = [], results = [], projections = [] }) => {
    for (const { series } of targets)
      for (const point of series) if (point.inbound_bps !== null) point.inbound_bps += 8;
    for (const incident of incidents) incident.peak.pps += 1;
    for (const { services } of projections) for (const service of services) service.version = 'changed';
    for (const result of results) result.state = result.state === 'complete' ? 'partial' : 'complete';
  });
}
