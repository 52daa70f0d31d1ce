/**
 * Consoles of servers: a ticket opens the console of one server once, within a minute, over a WebSocket.
 *
 * A console is held by the session or the API key that asked for its ticket. It closes when that may no longer act, when
 * the account is suspended or closed, and when the server is stopped or destroyed.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { CodedError } from '#common/errors/index.ts';
import type { ConsoleKind } from '#contracts/capabilities.ts';
import type { Accounts, CustomerActor } from '#operations/accounts/index.ts';
import type { ApiKeys } from '#operations/api-keys/index.ts';
import type { Billing } from '#operations/billing/index.ts';
import { findNodeOfServer } from '#operations/clusters/index.ts';
import { guestName, type Hypervisors } from '#operations/hypervisors/index.ts';
import { requireWrite, type Servers, serverNotFound } from '#operations/servers/index.ts';
import type { Server } from '#operations/views/server-store.ts';
import { record } from '#service-kit/audit/index.ts';
import { inTransaction, type Queryable } from '#service-kit/postgres/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import * as store from './store.ts';

export interface ConsoleTicket {
  /** Of the WebSocket, with the ticket. */
  path: string;
  kind: ConsoleKind;
  expiresAt: Date;
}

export interface OpenConsole {
  /** What the server's side sends and takes. */
  stream: Duplex;
  /** Whether its holder may still have it; asked again and again while it is open. */
  isAllowed(): Promise<boolean>;
}

export type Consoles = ReturnType<typeof createConsoles>;

/** Where WebSockets with tickets are accepted. */
export const consolePath = '/server-console';

export function createConsoles(deps: {
  db: () => Queryable;
  accounts: Accounts;
  apiKeys: ApiKeys;
  billing: Billing;
  hypervisors: Hypervisors;
  servers: Servers;
  sessions: Sessions;
}) {
  const driverOf = async (serverId: number) => {
    const node = await findNodeOfServer(deps.db(), serverId);
    return node === null ? null : deps.hypervisors.of(node);
  };

  /** The person or the key that holds a ticket; null when it may no longer act. */
  const findHolder = async ({ personId, sessionId, keyId }: store.Ticket): Promise<CustomerActor | null> => {
    if (keyId !== null) return deps.apiKeys.findActor(keyId);
    if (!(await deps.sessions.isLive(sessionId!))) return null;
    return deps.accounts.customerActorOf(personId);
  };

  const isAllowed = async (ticket: store.Ticket): Promise<boolean> => {
    const holder = await findHolder(ticket);
    if (!holder?.canWrite) return false;
    const server = await deps.servers.findServer(holder, null, ticket.serverId);
    if (server?.provisioningState !== 'ready' || server.powerState === 'stopped') return false;
    const account = (await deps.billing.accessOf([server.tenantId])).get(server.tenantId);
    return account !== undefined && account.status !== 'SUSPENDED' && account.status !== 'CLOSED';
  };

  /** What consoles of the server can speak, the usual one first. */
  const kindsOf = async (server: Server): Promise<readonly ConsoleKind[]> =>
    deps.servers.capabilitiesOf(server).includes('console')
      ? ((await driverOf(server.id))?.consoleKinds ?? [])
      : [];

  return {
    kindsOf,

    /**
     * A ticket for the console of a server that runs. `sessionId`: of the person who asks; null for a key. `kind`: null for the usual one.
     * Throws
     * `servers.not_found`, `servers.unsupported`, `servers.not_ready`, `accounts.forbidden`.
     */
    async createTicket(
      actor: CustomerActor,
      tenantId: number | null,
      serverId: number,
      { sessionId, kind: wanted }: { sessionId: string | null; kind: ConsoleKind | null },
    ): Promise<ConsoleTicket> {
      const server = await deps.servers.findServer(actor, tenantId, serverId);
      if (server === null) throw serverNotFound();
      requireWrite(actor, server.tenantId);
      const kinds = await kindsOf(server);
      const kind = kinds.find((one) => wanted === null || one === wanted);
      if (kind === undefined)
        throw new CodedError(
          'servers.unsupported',
          `The hypervisors of ${server.locationName} have no ${kinds.length > 0 ? `${wanted} ` : ''}consoles.`,
        );
      const secret = randomBytes(32).toString('base64url');
      const ticket = { serverId, personId: actor.personId, sessionId, keyId: actor.keyId, kind };
      if (!(await isAllowed(ticket)))
        throw new CodedError('servers.not_ready', 'The server does not run. Start it first.', {
          isOnItsWay: false,
        });
      const expiresAt = await inTransaction(deps.db(), async (tx) => {
        await record(tx, actor, {
          operation: 'server.open_console',
          subject: { kind: 'server', id: serverId, name: server.name },
          tenantId: server.tenantId,
        });
        return store.insertTicket(tx, digest(secret), ticket);
      });
      return { path: `${consolePath}?ticket=${secret}`, kind, expiresAt };
    },

    /** Takes the ticket and opens the console; null for a ticket that is unknown, used, expired or no longer allowed. */
    async open(secret: string): Promise<OpenConsole | null> {
      const ticket = await store.takeTicket(deps.db(), digest(secret));
      if (ticket === null || !(await isAllowed(ticket))) return null;
      const driver = await driverOf(ticket.serverId);
      const kind = ticket.kind ?? driver?.consoleKinds[0];
      if (driver === null || kind === undefined) return null;
      const stream = await driver.openConsole(guestName(ticket.serverId), kind);
      return { stream, isAllowed: () => isAllowed(ticket) };
    },
  };
}

const digest = (secret: string) => createHash('sha256').update(secret).digest();
