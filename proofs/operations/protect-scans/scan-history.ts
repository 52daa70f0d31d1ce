/** Steps in the life of scan requests, taken by the product and by a model that is written from the rules. */
import fc from 'fast-check';
import type { CustomerActor } from '#operations/accounts/index.ts';
import type { Allocation } from '#operations/addresses/index.ts';
import { expireLapsed, insertRequests } from '#operations/protect/scans/request-store.ts';
import type { World } from '#operations/testing/create-world.ts';
import type { ScanMonitor } from '#operations/testing/deliver-scans.ts';
import { ownerOf, scanOf } from '#operations/testing/scan-of.ts';
import { worldNowMs } from '#operations/testing/world-time.ts';

type About = 'claim' | 'start' | 'heartbeat' | 'withdraw' | 'complete' | 'partial';
export type Step =
  | { kind: 'click' | 'automatic' | 'finish' | 'off' | 'on' | 'tidy' }
  | { kind: 'wait'; minutes: number }
  | { kind: About; which: number };

const about: readonly About[] = ['claim', 'start', 'heartbeat', 'withdraw', 'complete', 'partial'];
export const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom<Step>({ kind: 'click' }, { kind: 'automatic' }) },
  { weight: 2, arbitrary: fc.constant<Step>({ kind: 'finish' }) },
  { weight: 3, arbitrary: fc.constantFrom<Step>({ kind: 'off' }, { kind: 'on' }, { kind: 'tidy' }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('wait' as const), minutes: fc.constantFrom(4, 11, 700, 1450) }),
  },
  { weight: 10, arbitrary: fc.record({ kind: fc.constantFrom(...about), which: fc.nat(7) }) },
);

interface Modelled {
  id: string;
  kind: 'manual' | 'automatic';
  allocationId: number;
  state: string;
  minutesOld: number;
}

const isPending = ({ state }: Modelled) => state === 'queued' || state === 'running';

export type History = Awaited<ReturnType<typeof createHistory>>;

/** A server with two addresses and an account of its own, its requests in the database and in the model. */
export async function createHistory(world: World, monitor: ScanMonitor) {
  const customer = await world.createCustomer('History');
  const { serverId } = await world.deploy(customer.tenant, 'history');
  await world.backdate(serverId, '90 days');
  const allocations = await world.addresses.listAllocationsOfServers([serverId]);
  const actor: CustomerActor = ownerOf(customer);
  let model: Modelled[] = [];
  let viewsOn = true;

  const switchViews = (on: boolean) =>
    world.protectSettings.change(actor, serverId, {
      ...{
        viewsOn: on,
        attackMail: true,
        attackWebhook: true,
        portMail: false,
        portWebhook: false,
        findingMail: 'off',
        findingWebhook: false,
      },
    });
  const lapse = () => {
    for (const each of model) if (each.state === 'queued' && each.minutesOld >= 1440) each.state = 'expired';
  };

  async function click(): Promise<void> {
    const before = model.filter(isPending);
    const running = before.filter(({ state }) => state === 'running');
    const hasManual = before.some(({ kind }) => kind === 'manual');
    const isCool = model.some(({ kind, minutesOld }) => kind === 'manual' && minutesOld < 10);
    const isAsked = hasManual || running.length === allocations.length;
    const expected = !viewsOn ? 'views_off' : isAsked ? 'pending' : isCool ? 'cooldown' : 'new';
    const got = await world.protectScans.request(actor, serverId).then(
      ({ requests, isNew }) => ({ outcome: isNew ? 'new' : 'pending', requests }),
      (error) => ({ outcome: String(error.code).replace('port_scans.', ''), requests: [] }),
    );
    if (got.outcome !== expected) throw new Error(`click: ${got.outcome} and not ${expected}`);
    if (expected !== 'new') return;
    for (const each of before) if (each.state === 'queued') each.state = 'cancelled';
    add(got.requests, 'manual');
  }

  function add(rows: readonly { id: string; allocationId: number }[], kind: Modelled['kind']): void {
    for (const { id, allocationId } of rows)
      if (!model.some((each) => each.id === id))
        model.push({ id, kind, allocationId, state: 'queued', minutesOld: 0 });
  }

  async function automatic(): Promise<void> {
    const busy = new Set(model.filter(isPending).map(({ allocationId }) => allocationId));
    const rows = await world.database.db.transaction().execute(async (tx) => {
      await expireLapsed(tx, serverId);
      return insertRequests(tx, 'automatic', allocations);
    });
    const free = allocations.filter(({ id }) => !busy.has(id)).length;
    if (rows.length !== free) throw new Error(`automatic: ${rows.length} and not ${free}`);
    add(rows, 'automatic');
  }

  async function wait(minutes: number): Promise<void> {
    for (const each of model) each.minutesOld += minutes;
    await world.database.pool.query(
      `update scan_requests set requested_at = requested_at - $1::interval, expires_at = expires_at - $1::interval
       where server_id = $2`,
      [`${minutes} minutes`, serverId],
    );
    lapse();
  }

  async function speak(kind: About, which: number): Promise<void> {
    const request = model[which % Math.max(1, model.length)];
    if (!request) return;
    const at = new Date(worldNowMs()).toISOString();
    const { id, state } = request;
    if (kind === 'complete' || kind === 'partial') {
      const allocation = allocations.find((each) => each.id === request.allocationId) as Allocation;
      await monitor.deliver({
        ...scanOf(allocation, { request_id: id, state: kind }),
        scan_id: crypto.randomUUID(),
      });
      if (isPending(request)) request.state = kind;
      return;
    }
    if (kind === 'claim') await monitor.say(id, 'claimed');
    else if (kind === 'withdraw') await monitor.say(id, 'withdrawn');
    else await monitor.say(id, 'running', { started_at: at, heartbeat_at: at, progress: 1 });
    if (kind === 'withdraw' && state === 'running') request.state = 'partial';
    if ((kind === 'start' || kind === 'heartbeat') && state === 'queued') request.state = 'running';
  }

  /** Results of all that is pending: what the cooldown alone holds back comes after this. */
  async function finish(): Promise<void> {
    for (const [which, each] of model.entries()) if (isPending(each)) await speak('complete', which);
  }

  return {
    async reset(): Promise<void> {
      model = [];
      if (!viewsOn) await switchViews(true);
      viewsOn = true;
      await world.database.pool.query(
        `with forgotten as (delete from port_scan_series where server_id = $1)
         delete from scan_requests where server_id = $1`,
        [serverId],
      );
    },
    async take(step: Step): Promise<void> {
      if (step.kind === 'click') await click();
      else if (step.kind === 'automatic') await automatic();
      else if (step.kind === 'finish') await finish();
      else if (step.kind === 'wait') await wait(step.minutes);
      else if (step.kind === 'tidy') await expireLapsed(world.database.db, 'all');
      else if (step.kind === 'on' || step.kind === 'off') {
        viewsOn = step.kind === 'on';
        await switchViews(viewsOn);
        if (viewsOn) return;
        for (const each of model)
          if (each.kind === 'manual' && each.state === 'queued') each.state = 'cancelled';
      } else if ('which' in step) await speak(step.kind, step.which);
    },
    /** The stored states; a lapsed request counts as expired. */
    async readStates(): Promise<Record<string, string>> {
      const { rows } = await world.database.pool.query<{ id: string; state: string }>(
        `select id, case when state = 'queued' and expires_at <= svc_now() then 'expired' else state end as state
         from scan_requests where server_id = $1`,
        [serverId],
      );
      return Object.fromEntries(rows.map(({ id, state }) => [id, state]).sort());
    },
    modelStates: (): Record<string, string> =>
      Object.fromEntries(model.map(({ id, state }) => [id, state]).sort()),
  };
}
