/** A world with a receiver of webhooks in another process, which verifies deliveries with an implementation of its own. */
import { silentReporter } from '#common/reporter/index.ts';
import type { CustomerActor, Person, Tenant } from '#operations/accounts/index.ts';
import { emit } from '#operations/events/index.ts';
import { createWorld } from '#operations/testing/dated-world.ts';
import { createWebhookSender, type WebhookSenderDeps } from '#operations/webhooks/send-deliveries.ts';
import { startReceiver } from '#service-kit/webhooks/testing/start-receiver.ts';

/** A customer with an organization of their own. */
export interface Party {
  owner: Person;
  tenant: Tenant;
  actor: CustomerActor;
}

export type WebhookWorld = Awaited<ReturnType<typeof startWebhookWorld>>;

export async function startWebhookWorld() {
  const world = await createWorld();
  const receiver = await startReceiver();
  return {
    world,
    receiver,
    async createParty(name: string): Promise<Party> {
      const { owner, tenant } = await world.createCustomer(name);
      return { owner, tenant, actor: (await world.accounts.customerActorOf(owner.id))! };
    },
    /** An endpoint at this path of the receiver, which is told its secret. */
    async createEndpoint(
      party: Party,
      path: string,
      eventTypes: string[],
      tenantId: number | null = null,
    ): Promise<{ endpointId: number; secret: string }> {
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
    sender: (changes: Partial<WebhookSenderDeps> = {}) =>
      createWebhookSender({
        secrets: world.secrets,
        db: () => world.database.db,
        clock: world.clock,
        reporter: silentReporter,
        rules: { allowPrivate: true },
        random: () => 0.5,
        ...changes,
      }),
    /** An event of this customer, as metering emits it. */
    async emitUsage({ tenant }: Party, percent: 50 | 80 | 100 = 80) {
      await emit(world.database.db, {
        type: 'usage.threshold',
        tenantId: tenant.id,
        period: '2026-11',
        percent,
      });
    },
    /** What arrived at this path. */
    at: (path: string) => receiver.received.filter((one) => one.path === path),
    /** Makes every pending delivery of the test's database due. */
    passTime: (): Promise<unknown> =>
      world.database.pool.query(
        "update webhook_deliveries set next_attempt_at = svc_now() where status = 'pending'",
      ),
    async [Symbol.asyncDispose]() {
      await receiver[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}
