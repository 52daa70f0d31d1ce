/** The control socket of `control.md`: HTTP over a Unix socket, by which drivers of other programs make guests. */

import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { type Static, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { firewallProtocols } from '#contracts/ip-protocols.ts';
import { Strict } from '#contracts/scalars.ts';
import { invalid } from '../guests/check-body.ts';
import type { GuestSize } from '../guests/guest.ts';
import type { GuestInput } from '../guests/guest-definition.ts';
import type { Guest, Guests } from '../guests/index.ts';
import type { PrivateNic } from '../world/private-networks.ts';

export interface ControlServerDeps {
  socket: string;
  facts: object;
  guests: Guests;
  reporter: Reporter;
  /** Null: the world's end can't be asked for here. */
  stopRequested: (() => void) | null;
}

const bodyBytesMax = 64 * 1024;

const Power = Type.Union([Type.Literal('on'), Type.Literal('off')]);
const PowerBody = Strict({ power: Power });
const GuardBody = Strict({ state: Power });
const SpeedBody = Strict({
  mbit: Type.Union([Type.Integer({ minimum: 1, maximum: 1_000_000 }), Type.Null()]),
});
const nicFields = { mac: Type.String(), address: Type.String(), prefix_length: Type.Integer() };
const NicBody = Strict(nicFields);
const DetachBody = Strict({ mac: Type.String() });
const NetworkBody = Strict({
  members: Type.Array(Strict({ guest: Type.String(), ...nicFields })),
});
const Verdict = Type.Union([Type.Literal('accept'), Type.Literal('drop')]);
const FirewallBody = Strict({
  inbound_policy: Verdict,
  outbound_policy: Verdict,
  rules: Type.Array(
    Strict({
      direction: Type.Union([Type.Literal('inbound'), Type.Literal('outbound')]),
      action: Verdict,
      protocol: Type.Enum([...firewallProtocols]),
      ports: Type.Union([Type.String(), Type.Null()]),
      peers: Type.Array(Type.String()),
    }),
  ),
});
const sizeFields = {
  vcpus: Type.Integer({ minimum: 1 }),
  memory_mb: Type.Integer({ minimum: 1 }),
  disk_gb: Type.Integer({ minimum: 1 }),
};
const SizeBody = Strict(sizeFields);
const DiskBody = Strict({
  image: Type.String({ minLength: 1, maxLength: 63 }),
  rebuild: Type.Integer({ minimum: 1 }),
});
const RestoreBody = Strict({ snapshot: Type.Integer({ minimum: 1 }), rebuild: Type.Integer({ minimum: 1 }) });
const Slug = Type.Union([Type.String({ minLength: 1, maxLength: 63 }), Type.Null()]);
const change = Type.Integer({ minimum: 1 });
const RescueBody = Strict({ image: Slug, change });
const IsoBody = Strict({ iso: Slug, change });
const AddressList = Type.Array(
  Strict({
    address: Type.String(),
    prefix_length: Type.Optional(Type.Integer()),
    gateway: Type.Optional(Type.String()),
  }),
);
const AddressesBody = Strict({ addresses: AddressList });
const GuestBody = Strict({
  image: Type.Optional(Type.String({ minLength: 1, maxLength: 63 })),
  source: Type.Optional(Strict({ guest: Type.String(), snapshot: Type.Integer({ minimum: 1 }) })),
  size: Type.Optional(SizeBody),
  mac: Type.Optional(Type.String()),
  addresses: Type.Optional(AddressList),
  private_interfaces: Type.Optional(Type.Array(Strict({ network: Type.Integer(), ...nicFields }))),
  power: Type.Optional(Power),
});

interface Answer {
  status: number;
  body: unknown;
}

export function createControlServer(deps: ControlServerDeps) {
  const server = createServer((request, response) => void serve(deps, request, response));
  return {
    async start() {
      rmSync(deps.socket, { force: true });
      server.listen(deps.socket);
      await once(server, 'listening');
      chmodSync(deps.socket, 0o600);
    },
    async stop() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      // Calls under way get their answers; a caller that never finishes its request does not hold up the end.
      const timer = setTimeout(() => server.closeAllConnections(), 2000);
      await closed;
      clearTimeout(timer);
    },
  };
}

async function serve(
  deps: ControlServerDeps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  let answer: Answer;
  try {
    answer = await answerCall(deps, request.method ?? '', request.url ?? '', await readBody(request));
  } catch (error) {
    answer = describeFailure(error);
    if (answer.status === 500) deps.reporter.error('control call failed', { error: describeError(error) });
  }
  const text = answer.body === undefined ? '' : JSON.stringify(answer.body);
  response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text);
}

async function answerCall(
  deps: ControlServerDeps,
  method: string,
  url: string,
  body: unknown,
): Promise<Answer> {
  const path = decodePath(url);
  const call = `${method} /${nameParts(path).join('/')}`;
  const name = path[1] ?? '';
  const { guests } = deps;
  switch (call) {
    case 'GET /world':
      return { status: 200, body: deps.facts };
    case 'POST /world/stop':
      if (!deps.stopRequested) throw invalid('This world ends with the program that made it');
      setImmediate(deps.stopRequested);
      return { status: 202, body: {} };
    case 'GET /guests':
      return { status: 200, body: { guests: await listGuests(guests) } };
    case 'GET /guests/{name}':
      return { status: 200, body: toWire(guests.get(name)) };
    case 'PUT /guests/{name}': {
      const isNew = await guests.put(readGuestBody(name, body));
      return { status: isNew ? 201 : 200, body: toWire(guests.get(name)) };
    }
    case 'PUT /networks/{id}': {
      const network = Number(path[1]);
      const { members } = checkBody(NetworkBody, body);
      await guests.syncNetwork(
        network,
        members.map((member) => ({ guest: member.guest, nic: toNic(network, member) })),
      );
      return { status: 200, body: { network, members: members.length } };
    }
  }
  if (!(call in changes)) throw new CodedError('lab.call_unknown', `There is no ${method} ${url} here`);
  await changes[call]!(guests, name, body, Number(path.at(-1)));
  // A guest that was changed is shown; of what was removed nothing is said.
  return method === 'DELETE'
    ? { status: 204, body: undefined }
    : { status: 200, body: toWire(guests.get(name)) };
}

/** What changes a guest, or removes something; `id` is the number that the path ends with. */
const changes: Readonly<
  Record<string, (guests: Guests, name: string, body: unknown, id: number) => Promise<void>>
> = {
  'PUT /guests/{name}/power': (guests, name, body) => {
    if (!Value.Check(PowerBody, body)) throw invalid('The body must be {"power": "on"} or {"power": "off"}');
    return guests.setPower(name, body.power);
  },
  'POST /guests/{name}/restart': (guests, name) => guests.restart(name),
  'PUT /guests/{name}/disk': (guests, name, body) => {
    if (typeof body === 'object' && body !== null && 'snapshot' in body) {
      const { snapshot, rebuild } = checkBody(RestoreBody, body);
      return guests.restore(name, snapshot, rebuild);
    }
    const { image, rebuild } = checkBody(DiskBody, body);
    return guests.rebuild(name, image, rebuild);
  },
  'PUT /guests/{name}/rescue': (guests, name, body) => {
    const { image, change } = checkBody(RescueBody, body);
    return guests.rescue(name, image, change);
  },
  'PUT /guests/{name}/iso': (guests, name, body) => {
    const { iso, change } = checkBody(IsoBody, body);
    return guests.changeIso(name, iso, change);
  },
  'PUT /guests/{name}/snapshots/{id}': (guests, name, _, id) => guests.keepSnapshot(name, id),
  'DELETE /guests/{name}/snapshots/{id}': (guests, name, _, id) => guests.dropSnapshot(name, id),
  'PUT /guests/{name}/size': (guests, name, body) => guests.resize(name, toSize(checkBody(SizeBody, body))),
  'DELETE /guests/{name}': (guests, name) => guests.remove(name),
  'PUT /guests/{name}/networks/{id}': (guests, name, body, id) =>
    guests.attachNic(name, toNic(id, checkBody(NicBody, body))),
  'DELETE /guests/{name}/networks/{id}': (guests, name, body, id) =>
    guests.detachNic(name, id, checkBody(DetachBody, body).mac),
  'PUT /guests/{name}/addresses': (guests, name, body) =>
    guests.setAddresses(name, checkBody(AddressesBody, body).addresses.map(toAddress)),
  'PUT /guests/{name}/firewall': (guests, name, body) => {
    const {
      inbound_policy: inboundPolicy,
      outbound_policy: outboundPolicy,
      rules,
    } = checkBody(FirewallBody, body);
    return guests.setFirewall(name, { inboundPolicy, outboundPolicy, rules });
  },
  'DELETE /guests/{name}/firewall': (guests, name) => guests.setFirewall(name, null),
  'PUT /guests/{name}/guard': (guests, name, body) => guests.setGuard(name, checkBody(GuardBody, body).state),
  'PUT /guests/{name}/speed': (guests, name, body) => guests.setSpeed(name, checkBody(SpeedBody, body).mbit),
  'DELETE /networks/{id}': (guests, _, __, id) => guests.removeNetwork(id),
};

/** The path with what names a guest, a network or a snapshot replaced by its kind. */
function nameParts(path: readonly string[]): string[] {
  return path.map((part, i) => {
    if (i === 1 && path[0] === 'guests') return '{name}';
    const isNumbered = ['networks', 'snapshots'].includes(path[i - 1] ?? '') && /^[1-9]\d{0,11}$/.test(part);
    return isNumbered ? '{id}' : part;
  });
}

function checkBody<T extends TSchema>(schema: T, body: unknown): Static<T> {
  if (Value.Check(schema, body)) return body as Static<T>;
  const first = Value.Errors(schema, body)[0];
  throw invalid(`The body${first?.instancePath ?? ''} ${first?.message ?? 'is not as documented'}`);
}

function decodePath(url: string): string[] {
  try {
    return new URL(url, 'http://lab').pathname.split('/').slice(1).map(decodeURIComponent);
  } catch {
    throw new CodedError('lab.call_unknown', 'The path of the call is malformed');
  }
}

function readGuestBody(name: string, body: unknown): GuestInput {
  const { mac, addresses, private_interfaces: nics, image, source, size, power } = checkBody(GuestBody, body);
  return {
    name,
    image: image ?? null,
    ...(source && { source }),
    size: size === undefined ? null : toSize(size),
    mac: mac ?? null,
    addresses: (addresses ?? []).map(toAddress),
    nics: (nics ?? []).map((entry) => toNic(entry.network, entry)),
    ...(power === undefined ? {} : { power }),
  };
}

/** All guests, each with what its public link has carried and its guard has dropped. */
async function listGuests(guests: Guests): Promise<object[]> {
  const [counters, guards] = await Promise.all([guests.readCounters(), guests.readGuards()]);
  return guests.list().map((guest) => {
    const count = guest.interface === null ? undefined : counters.get(guest.interface);
    const shown = count && { received_bytes: count.receivedBytes, sent_bytes: count.sentBytes };
    const guarded = (guards.get(guest.name) ?? []).map(({ link, network, dropped, claimed }) => ({
      ...{ interface: link, network, dropped },
      claimed: claimed.map(({ secondsAgo, ...claim }) => ({ ...claim, seconds_ago: secondsAgo })),
    }));
    return { ...toWire(guest), counters: shown ?? null, guarded };
  });
}

function toSize(body: Static<typeof SizeBody>): GuestSize {
  return { vcpus: body.vcpus, memoryMb: body.memory_mb, diskGb: body.disk_gb };
}

function toAddress(entry: Static<typeof AddressList>[number]) {
  return {
    address: entry.address,
    ...(entry.prefix_length === undefined ? {} : { prefixLength: entry.prefix_length }),
    ...(entry.gateway === undefined ? {} : { gateway: entry.gateway }),
  };
}

function toNic(network: number, body: Static<typeof NicBody>): PrivateNic {
  return { network, mac: body.mac, address: body.address, prefixLength: body.prefix_length };
}

function toWire(guest: Guest): object {
  return {
    name: guest.name,
    mac: guest.mac,
    addresses: guest.addresses.map((entry) => ({
      address: entry.address,
      prefix_length: entry.prefixLength,
      gateway: entry.gateway,
    })),
    private_interfaces: guest.nics.map((nic) => ({
      network: nic.network,
      mac: nic.mac,
      address: nic.address,
      prefix_length: nic.prefixLength,
    })),
    guard: guest.guard,
    image: guest.image,
    rebuild: guest.rebuild,
    size: guest.size && {
      vcpus: guest.size.vcpus,
      memory_mb: guest.size.memoryMb,
      disk_gb: guest.size.diskGb,
    },
    speed_mbit: guest.speedMbit,
    rescue: guest.rescue.image,
    iso: guest.drive.iso,
    power: guest.power,
    interface: guest.interface,
    namespace: guest.namespace,
    exchanges: guest.talk && {
      held: guest.talk.held,
      failed: guest.talk.failed,
      last_failure: guest.talk.lastFailure,
    },
  };
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bodyBytesMax) throw invalid(`The body is larger than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  if (bytes === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    throw invalid('The body is no JSON');
  }
}

const statuses: Readonly<Record<string, number>> = {
  'lab.body_invalid': 400,
  'lab.call_unknown': 404,
  'lab.guest_unknown': 404,
  'lab.guest_differs': 409,
  'lab.address_taken': 409,
  'lab.mac_taken': 409,
  'lab.network_in_use': 409,
  'lab.rebuilt_since': 409,
  'lab.rescued_since': 409,
  'lab.drive_changed_since': 409,
  'lab.snapshot_unknown': 409,
  'lab.guest_runs': 409,
  'lab.disk_smaller': 409,
};

function describeFailure(error: unknown): Answer {
  const code = error instanceof CodedError && statuses[error.code] ? error.code : 'lab.lab_failed';
  const message = describeError(error);
  return { status: statuses[code] ?? 500, body: { error: { code: code.slice('lab.'.length), message } } };
}

/** Calls a control socket; rejects when no process answers. */
export function callControl(
  socket: string,
  method: string,
  path: string,
  body?: object,
): Promise<{ status: number; body: unknown }> {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? '' : JSON.stringify(body);
    // Named always: a DELETE's body would go out without any mark of its length.
    const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
    const request = httpRequest({ socketPath: socket, method, path, headers, agent: false }, (response) => {
      readBody(response).then((answer) => resolve({ status: response.statusCode!, body: answer }), reject);
    });
    request.on('error', reject);
    request.end(text);
  });
}
