/** The hypervisor of the lab: every guest is a network namespace with real packets. Speaks the lab's control socket. */
import { request } from 'node:http';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { HypervisorDriver, HypervisorSite, PrivateInterface } from './guest.ts';

export interface LabDriverOptions {
  /** `control_socket` of the lab's `world.json`. */
  socketPath: string;
  timeoutMs?: number;
}

interface LabAnswer {
  status: number;
  body: unknown;
}

interface LabWorld {
  node: string;
  bridge: string;
  networks: { prefix: string; gateway: string; first_guest: string; last_guest: string }[];
}

interface LabGuest {
  name: string;
  power: 'on' | 'off';
  /** Null for a guest without a link on the public bridge. */
  interface: string | null;
  /** Null while it is off. */
  counters: { received_bytes: number; sent_bytes: number } | null;
}

const answerBytesMax = 1024 * 1024;

export function createLabDriver(options: LabDriverOptions): HypervisorDriver {
  const call = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await send(options, method, path, body);
    if (answer.status < 300) return answer.body;
    throw refusal(answer);
  };
  const guestPath = (name: string) => `/guests/${encodeURIComponent(name)}`;
  return {
    driver: 'lab',
    segmentReach: 'site',
    filtersTraffic: true,
    implicitRules: [
      {
        direction: 'inbound',
        action: 'accept',
        protocol: 'any',
        description:
          'Platform: answers to connections that the server has opened, and ICMP errors about them',
      },
      {
        direction: 'outbound',
        action: 'accept',
        protocol: 'any',
        description: 'Platform: answers to connections that others have opened',
      },
      {
        direction: 'outbound',
        action: 'drop',
        protocol: 'any',
        description:
          'Platform: on private networks, what carries another MAC or address than the server’s own',
      },
    ],
    async applyFirewall(guest, plan) {
      const path = `${guestPath(guest)}/firewall`;
      if (plan === null) await call('DELETE', path);
      else
        await call('PUT', path, {
          inbound_policy: plan.inboundPolicy,
          outbound_policy: plan.outboundPolicy,
          rules: plan.rules.map(({ direction, action, protocol, ports, peers }) => ({
            direction,
            action,
            protocol,
            ports,
            peers,
          })),
        });
    },
    preparedGuests: [],
    async describeSite(): Promise<HypervisorSite> {
      const world = (await call('GET', '/world')) as LabWorld;
      return {
        node: world.node,
        bridge: world.bridge,
        networks: world.networks.map((network) => ({
          prefix: network.prefix,
          gateway: network.gateway,
          firstGuest: network.first_guest,
          lastGuest: network.last_guest,
        })),
      };
    },
    async ensureGuest(guest, step) {
      await step(20);
      const addresses = guest.addresses.map((given) => ({
        address: given.address,
        prefix_length: given.prefixLength,
        gateway: given.gateway,
      }));
      await call('PUT', guestPath(guest.name), {
        ...(guest.mac === null ? {} : { mac: guest.mac, addresses }),
        ...(guest.privateInterfaces.length > 0
          ? { private_interfaces: guest.privateInterfaces.map(toWire) }
          : {}),
        power: 'on',
      });
      await step(95);
      return 'ready';
    },
    async setPower(name, power) {
      await call('PUT', `${guestPath(name)}/power`, { power });
    },
    // A guest of the lab is a process that obeys at once, so a halt and a cut of its power are the same.
    async signalShutdown(name) {
      await call('PUT', `${guestPath(name)}/power`, { power: 'off' });
    },
    async restart(name) {
      await call('POST', `${guestPath(name)}/restart`);
    },
    async readPower(name) {
      const answer = await send(options, 'GET', guestPath(name));
      if (answer.status === 404) return null;
      if (answer.status >= 300) throw refusal(answer);
      return (answer.body as LabGuest).power;
    },
    async observeGuests() {
      const { guests } = (await call('GET', '/guests')) as { guests: LabGuest[] };
      return guests.map(({ name, power, interface: device, counters }) => ({
        name,
        power,
        interfaces:
          device === null || counters === null
            ? []
            : [
                {
                  device,
                  isPublic: true,
                  receivedBytes: counters.received_bytes,
                  sentBytes: counters.sent_bytes,
                },
              ],
      }));
    },
    async ensureGone(name) {
      await call('DELETE', guestPath(name));
    },
    async attachInterface(guest, nic) {
      await call('PUT', `${guestPath(guest)}/networks/${nic.networkId}`, nicBody(nic));
      return { requiresReboot: false };
    },
    async detachInterface(guest, nic) {
      await call('DELETE', `${guestPath(guest)}/networks/${nic.networkId}`, { mac: nic.mac });
    },
    async syncNetwork(networkId, members) {
      await call('PUT', `/networks/${networkId}`, {
        members: members.map((member) => ({ guest: member.guest, ...nicBody(member.interface) })),
      });
    },
    async removeNetwork(networkId) {
      await call('DELETE', `/networks/${networkId}`);
    },
  };
}

function nicBody(nic: PrivateInterface): object {
  return { mac: nic.mac, address: nic.address, prefix_length: nic.prefixLength };
}

function toWire(nic: PrivateInterface): object {
  return { network: nic.networkId, ...nicBody(nic) };
}

/** 4xx is the lab's last word; 5xx and silence are worth another attempt. */
function refusal(answer: LabAnswer): CodedError {
  const error = (answer.body as { error?: { code?: unknown; message?: unknown } } | null)?.error;
  const code = answer.status < 500 ? 'hypervisor.refused' : 'hypervisor.failed';
  return new CodedError(
    code,
    `The lab answered ${answer.status} ${String(error?.message ?? error?.code ?? '')}.`,
  );
}

function send(options: LabDriverOptions, method: string, path: string, body?: object): Promise<LabAnswer> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown) =>
      reject(
        new CodedError(
          'hypervisor.unreachable',
          `The lab does not answer (${describeError(error)}).`,
          {},
          error,
        ),
      );
    const text = body === undefined ? '' : JSON.stringify(body);
    const headers = { host: 'lab', ...(text ? { 'content-type': 'application/json' } : {}) };
    const call = request(
      {
        socketPath: options.socketPath,
        method,
        path,
        headers: { ...headers, 'content-length': Buffer.byteLength(text) },
        timeout: options.timeoutMs ?? 15_000,
      },
      (response) => {
        let received = '';
        response.setEncoding('utf8');
        response.on('data', (piece: string) => {
          received += piece;
          if (received.length > answerBytesMax) call.destroy(new Error('the answer is too long'));
        });
        response.on('error', fail);
        response.on('end', () => {
          try {
            resolve({ status: response.statusCode ?? 500, body: received ? JSON.parse(received) : null });
          } catch (error) {
            fail(error);
          }
        });
      },
    );
    call.on('timeout', () => call.destroy(new Error('no answer in time')));
    call.on('error', fail);
    call.end(text);
  });
}
