/**
 * What a fleet of sensors says to its monitor, each over a keep-alive connection of its own from an address of its own, as real
 * ones do. Bytes are those of the connections, headers included and TLS not.
 */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import type { Socket } from 'node:net';
import { encodeLive, liveWindowMs } from '#contracts/sensor-api/live-codec.ts';
import { compressUpload } from '#contracts/sensor-api/telemetry-codec.ts';
import {
  addressOf,
  type FleetSensor,
  hostsOfUpload,
  inParallel,
  makeMinute,
  sensorVersion,
} from '#monitor/facts/testing/bench-fleet.ts';
import type { Random } from '#monitor/facts/testing/random-uploads.ts';

/** Requests that are under way at the same time. */
const atOnce = 48;

export interface WireBytes {
  sent: number;
  received: number;
}

export class SensorClient {
  readonly #port: number;
  readonly #random: Random;
  readonly #agents = new Map<number, Agent>();
  readonly #etags = new Map<number, string>();
  readonly #runs = new Map<number, string>();
  readonly #sockets = new Set<Socket>();
  /** Requests that a connection was refused to. */
  unanswered = 0;

  constructor(port: number, random: Random) {
    this.#port = port;
    this.#random = random;
  }

  /** Asks for each sensor's plan; one that a sensor has is not sent again. */
  fetchPlans(fleet: readonly FleetSensor[]): Promise<void> {
    return inParallel(fleet, atOnce, async (sensor) => {
      const known = this.#etags.get(sensor.index);
      const headers = known === undefined ? {} : { 'if-none-match': known };
      const answer = await this.#send(sensor, { method: 'GET', path: '/plan', headers });
      if (answer?.etag) this.#etags.set(sensor.index, answer.etag);
    });
  }

  /** Posts each sensor's window that began at this time; `hasCondition`: and how its host is. */
  async postLive(
    fleet: readonly FleetSensor[],
    startedAtMs: number,
    hasCondition: boolean,
    inTurn: (requests: () => Promise<void>) => Promise<void> = (requests) => requests(),
  ): Promise<void> {
    const made = fleet.map((sensor) => ({
      sensor,
      body: this.#makeLive(sensor, startedAtMs, hasCondition),
    }));
    await inTurn(() => inParallel(made, atOnce, ({ sensor, body }) => this.#post(sensor, '/live', body)));
  }

  /** Every sensor's upload of this minute, to be posted by `post`. */
  makeUploads(fleet: readonly FleetSensor[], minute: number): { sensor: FleetSensor; body: Uint8Array }[] {
    return makeMinute(fleet, this.#random, minute).map(({ body }, i) => ({ sensor: fleet[i]!, body }));
  }

  post(uploads: readonly { sensor: FleetSensor; body: Uint8Array }[]): Promise<void> {
    return inParallel(uploads, atOnce, ({ sensor, body }) => this.#post(sensor, '/telemetry', body));
  }

  /** As if all sensors had been started anew: no window from now on is one that was posted before. */
  beginRuns(): void {
    this.#runs.clear();
  }

  /** Of all connections so far. */
  bytes(): WireBytes {
    const sum = { sent: 0, received: 0 };
    for (const socket of this.#sockets) {
      sum.sent += socket.bytesWritten;
      sum.received += socket.bytesRead;
    }
    return sum;
  }

  openConnections(): number {
    return [...this.#sockets].filter((socket) => !socket.destroyed).length;
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }

  #makeLive(sensor: FleetSensor, startedAtMs: number, hasCondition: boolean): Uint8Array {
    const random = this.#random;
    const runId = this.#runs.get(sensor.index) ?? randomUUID();
    this.#runs.set(sensor.index, runId);
    const packets = 20_000 + random(5000);
    const totals = { packets, ipPackets: packets, ipBytes: packets * 700, nonIpPackets: 0, parserDropped: 0 };
    const hosts = Array.from({ length: hostsOfUpload }, (_, i) => ({
      address: addressOf(sensor, i),
      rxBytes: random(200_000),
      txBytes: random(200_000),
      packets: random(1000),
    }));
    const capture = { name: 'eth0', role: 'uplink' as const, isListening: true };
    const condition = {
      observedAtMs: Date.now(),
      spoolPendingBytes: 0,
      spoolBytesMax: 2 ** 30,
      spoolPendingUploads: 0,
      diskFreeBytes: 2 ** 36,
      diskBytes: 2 ** 37,
      isPaused: false,
      captures: [capture],
    };
    const window = {
      capture: capture.name,
      role: capture.role,
      startedAtMs,
      observedMs: liveWindowMs,
      totals: { ...totals, kernelDropped: 0, detailTruncated: 0 },
      hosts,
      hostsLeftOut: 0,
    };
    return compressUpload(
      encodeLive({ runId, sensorVersion, windows: [window], ...(hasCondition ? { condition } : {}) }),
    );
  }

  async #post(sensor: FleetSensor, path: string, body: Uint8Array): Promise<void> {
    const headers = {
      'content-type': 'application/x-protobuf',
      'content-encoding': 'zstd',
      'content-length': body.length,
    };
    await this.#send(sensor, { method: 'POST', path, headers, body });
  }

  /** Null where the connection was refused; throws for any answer that a sensor would have to repeat its request after. */
  #send(
    sensor: FleetSensor,
    asked: {
      method: string;
      path: string;
      headers: Record<string, string | number>;
      body?: Uint8Array;
    },
  ): Promise<{ etag: string | undefined } | null> {
    const { method, path, body } = asked;
    const headers = { authorization: `Bearer ${sensor.credential}`, ...asked.headers };
    const agent = this.#agentOf(sensor);
    return new Promise((resolve, reject) => {
      const sent = request(
        { agent, port: this.#port, method, path: `/agent/v1${path}`, headers },
        (answer) => {
          answer.resume();
          answer.on('error', reject);
          answer.on('end', () =>
            answer.statusCode === 200 || answer.statusCode === 304
              ? resolve({ etag: answer.headers.etag })
              : reject(new Error(`the monitor answered ${path} with ${answer.statusCode}`)),
          );
        },
      );
      sent.on('socket', (socket) => this.#sockets.add(socket));
      sent.on('error', (error: Error & { code?: string }) => {
        if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') return reject(error);
        this.unanswered += 1;
        resolve(null);
      });
      sent.end(body);
    });
  }

  #agentOf({ index }: FleetSensor): Agent {
    const known = this.#agents.get(index);
    if (known) return known;
    const localAddress = `127.${1 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`;
    const agent = new Agent({ keepAlive: true, maxSockets: 1, localAddress });
    this.#agents.set(index, agent);
    return agent;
  }
}
