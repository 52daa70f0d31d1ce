/** A world with a receiver of webhooks in another process, which verifies deliveries with an implementation of its own. */
import { silentReporter } from '#common/reporter/index.ts';
import type { CustomerActor, Person, Tenant } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { createWebhookSender, type WebhookSenderDeps } from '#operations/webhooks/send-deliveries.ts';
import { type Receiver, startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';

/** A customer with an organization of their own. */
export interface Party {
  owner: Person;
  tenant: Tenant;
  actor: CustomerActor;
}

export interface WebhookWorld extends AsyncDisposable {
  world: World;
  receiver: Receiver;
  createParty(name: string): Promise<Party>;
  /** An endpoint at this path of the receiver, which is told its secret. */
  createEndpoint(
    party: Party,
    path: string,
    eventTypes: string[],
    tenantId?: number | null,
  ): Promise<{ endpointId: number; secret: string }>;
  sender(changes?: Partial<WebhookSenderDeps>): ReturnType<typeof createWebhookSender>;
  /** An event of this customer, as metering emits it. */
  emitUsage(party: Party, percent?: 50 | 80 | 100): Promise<void>;
  /** What arrived at this path. */
  at(path: string): Receiver['received'];
  /** Makes every pending delivery of the test's database due. */
  passTime(): Promise<unknown>;
}

export async function startWebhookWorld(): Promise<WebhookWorld> {
  const world = await createWorld();
  const receiver = await startReceiver();
  return {
    world,
    receiver,
    async createParty(name) {
      const { owner, tenant } = await world.createCustomer(name);
      return { owner, tenant, actor: (await world.accounts.customerActorOf(owner.id))! };
    },
    async createEndpoint(party, path, eventTypes, tenantId = null) {
      const made = await world.webhooks.createEndpoint(party.actor, {
        organizationId: party.tenant.organizationId,
        tenantId,
        url: `${receiver.url}${path}`,
        description: 'test',
        eventTypes,
      });
      receiver.learn(made.secret);
      return made;
    },
    sender: (changes = {}) =>
      createWebhookSender({
        secrets: world.secrets,
        db: () => world.database.db,
        clock: world.clock,
        reporter: silentReporter,
        rules: { allowPrivate: true },
        random: () => 0.5,
        ...changes,
      }),
    async emitUsage({ tenant }, percent = 80) {
      await emit(world.database.db, {
        type: 'usage.threshold',
        tenantId: tenant.id,
        period: '2026-11',
        percent,
      });
    },
    at: (path) => receiver.received.filter((one) => one.path === path),
    passTime: () =>
      world.database.pool.query(
        "update webhook_deliveries set next_attempt_at = svc_now() where status = 'pending'",
      ),
    async [Symbol.asyncDispose]() {
      await receiver[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}
