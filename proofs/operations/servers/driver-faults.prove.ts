/**
 * `npm run prove -- driver-faults`: `n` servers live and are destroyed while `virsh` fails, hangs or lies at any of its calls. In the end the
 * node holds what the rows say, or the comparison with the node names the difference; after the destruction nothing is left.
 */
import { CodedError } from '#common/errors/index.ts';
import { seededRandom } from '#common/random/index.ts';
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { guestName, type HypervisorDriver } from '#operations/hypervisors/index.ts';
import { createLibvirtDriver } from '#operations/hypervisors/libvirt/driver.ts';
import { type Virsh, virshError } from '#operations/hypervisors/libvirt/run-virsh.ts';
import { node } from '#operations/hypervisors/testing/example-guest.ts';
import { createModelNode, type ModelNode } from '#operations/hypervisors/testing/model-node.ts';
import { findDrift } from '#operations/servers/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import { listSoldServers } from '#operations/views/server-store.ts';

export const name = 'driver-faults';

/** What a command does instead of its work, or after it. */
const faults = {
  fails: { isDone: false, says: 'error: internal error: client socket is closed' },
  'fails once it is done': { isDone: true, says: 'error: internal error: client socket is closed' },
  'finds no node': { isDone: false, says: 'error: failed to connect to the hypervisor' },
  hangs: { isDone: false, says: ' ended by SIGKILL: no answer within 60 s, or too long a one' },
  'hangs once it is done': {
    isDone: true,
    says: ' ended by SIGKILL: no answer within 60 s, or too long a one',
  },
  'says that it is done': { isDone: false, says: null },
} as const;
type Fault = keyof typeof faults;
const faultNames = Object.keys(faults) as Fault[];
/** Commands that change nothing: they can’t say that they have. */
const reads =
  /^(dom(state|stats|iflist)|dumpxml|capabilities|list|net-(info|list)|nwfilter-(list|dumpxml)|vol-(list|info)|pool-)/;

/** Whether the command that is next has a fault. */
type Plan = (command: readonly string[]) => Fault | null;

function faultyVirsh(virsh: Virsh, plan: () => Plan): Virsh {
  return async (command) => {
    const fault = plan()(command);
    if (fault === null) return virsh(command);
    const { isDone, says } = faults[fault];
    if (isDone) await virsh(command);
    if (says === null) return '';
    throw virshError(command[0]!, says);
  };
}

/** Drivers with a bug: the named call takes a fault for its success. Of power and NICs the next look at the node would tell. */
const planted = ['ensureGone', 'rebuildGuest', 'resizeGuest', 'removeNetwork'] as const;
type Planted = (typeof planted)[number];

function careless(driver: HypervisorDriver, call: Planted): HypervisorDriver {
  return {
    ...driver,
    async [call](...given: unknown[]) {
      try {
        return await (driver[call] as (...given: unknown[]) => Promise<unknown>)(...given);
      } catch {
        return 'ready';
      }
    },
  } as HypervisorDriver;
}

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
}

interface Site {
  world: World;
  model: ModelNode;
  tenant: Tenant;
  setPlan(plan: Plan): void;
}

async function withSite<T>(bug: Planted | null, use: (site: Site) => Promise<T>): Promise<T> {
  const model = createModelNode(['debian-12', 'debian-13', 'rescue-13', 'tools.iso']);
  let plan: Plan = () => null;
  const virsh = faultyVirsh(model.virsh, () => plan);
  const driver = createLibvirtDriver({ ...node, uri: 'qemu:///system' }, { virsh });
  await using world = await createWorld({
    hypervisor: () => (bug === null ? driver : careless(driver, bug)),
  });
  const { db, pool } = world.database;
  await ensureImage(db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  await ensureImage(db, { slug: 'rescue-13', name: 'Rescue 13', family: 'debian', kind: 'rescue' });
  await ensureImage(db, { slug: 'tools', name: 'Tools', family: 'windows', kind: 'iso' });
  await ensurePlan(db, {
    ...{ slug: 'large', name: 'Large', vcpus: 2, memoryMb: 4_096, diskGb: 80 },
    ...{ hourlyQuanta: 200, monthlyCapQuanta: 120_000 },
  });
  await pool.query(
    `update address_pools set prefix = '203.0.0.0/16', gateway = '203.0.0.1', first_address = '203.0.0.10', last_address = '203.0.255.250'
     where family(first_address) = 4`,
  );
  const { tenant } = await world.createCustomer('Faults');
  return await use({
    ...{ world, model, tenant },
    setPlan(next) {
      plan = next;
    },
  });
}

/** As time would, a minute at a look, until there is nothing to do; at most as often as a job is tried. */
async function settle({ world }: Site): Promise<void> {
  for (let pass = 0; pass < 10; pass += 1) {
    // Mails about destroyed servers have no sender here: waiting for them would take each life longer than the one before.
    const { rowCount } = await world.database.pool.query(
      `update jobs set run_at = svc_now(), claimed_until = null where finished_at is null and kind <> 'destroy-notices.send'`,
    );
    if (rowCount === 0) return;
    await world.database.pool.query(
      `update server_actions set started_at = started_at - interval '1 minute' where status in ('queued', 'running')`,
    );
    await world.jobs.drain();
  }
}

/** One server's life; what was wrong with it in the end. */
async function live(site: Site, random: () => number): Promise<string[]> {
  const { world, model, tenant, setPlan } = site;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const said: string[] = [];
  /** Faults at up to three calls of a step, now and then for as long as it is tried. */
  const plan = (): Plan => {
    const at = new Set(Array.from({ length: Math.floor(random() * 4) }, () => Math.floor(random() * 30)));
    const lasting = random() < 0.1 ? pick(faultNames.slice(0, -1)) : null;
    let calls = -1;
    return ([command = '']) => {
      calls += 1;
      const isFault = at.has(calls) || (lasting !== null && at.size > 0 && calls > Math.min(...at));
      if (!isFault) return null;
      const fault = lasting ?? pick(reads.test(command) ? faultNames.slice(0, -1) : faultNames);
      said.push(`${command} ${fault}`);
      return fault;
    };
  };
  const run = async (what: string, work: () => Promise<unknown>) => {
    said.push(`${what}:`);
    setPlan(plan());
    try {
      await work();
    } catch (error) {
      // Busy, failed, gone: an answer to the caller.
      if (!(error instanceof CodedError)) throw error;
      said.push(error.code);
    }
    await settle(site);
    setPlan(() => null);
    await settle(site);
  };

  let serverId = 0;
  await run('create', async () => {
    ({ serverId } = await world.deploy(tenant, 'faults'));
  });
  const { id: networkId } = await world.networks.createNetwork(systemActor, {
    tenantId: tenant.id,
    name: 'faults',
  });
  const steps: Record<string, () => Promise<unknown>> = {
    rebuild: () =>
      world.servers.rebuildServer(systemActor, null, serverId, { image: pick(['debian-12', 'debian-13']) }),
    resize: () => world.servers.resizeServer(systemActor, null, serverId, { plan: 'large' }),
    rescue: () => world.servers.rescueServer(systemActor, null, serverId, {}),
    attachIso: () => world.servers.attachIso(systemActor, null, serverId, 'tools'),
    detachIso: () => world.servers.detachIso(systemActor, null, serverId),
    unrescue: () => world.servers.unrescueServer(systemActor, null, serverId),
    ...Object.fromEntries(
      (['start', 'stop', 'shutdown', 'reboot', 'reset'] as const).map((command) => [
        command,
        () => world.servers.changePower(systemActor, null, serverId, { command }),
      ]),
    ),
    attach: () => world.networks.attachServer(systemActor, null, { serverId, networkId }),
    detach: () => world.networks.detachServer(systemActor, null, { serverId, networkId }),
    sync: () => world.networks.syncNetwork(systemActor, null, networkId),
  };
  for (let step = 0; step < 5; step += 1) {
    const what = pick(Object.keys(steps));
    await run(what, steps[what]!);
  }
  const wrong = await compare(site, serverId);
  if ((await world.servers.findServer(systemActor, null, serverId))?.provisioningState === 'failed')
    await run('remove', () => world.servers.resolveProvisioning(systemActor, serverId, 'remove'));
  else await run('destroy', () => world.servers.destroyServer(systemActor, null, serverId));
  await run('delete the network', () => world.networks.deleteNetwork(systemActor, null, networkId));
  if ((await world.servers.findServer(systemActor, null, serverId)) !== null)
    wrong.push('the server is there');
  wrong.push(...model.listLeftovers().map((left) => `left: ${left}`));
  return wrong.map((one) => `${one}; ${said.join(' ')}`);
}

/** Where the node differs from the rows, and the comparison with the node does not say so. */
async function compare({ world, model }: Site, serverId: number): Promise<string[]> {
  const guest = guestName(serverId);
  await world.observePower();
  await findDrift({ ...world, reporter: world.watch.reporter });
  const server = await world.servers.findServer(systemActor, null, serverId);
  if (server === null) return ['the rows have no server'];
  if (server.currentAction !== null) return [`${server.currentAction.command} has no end`];
  // Its remains are looked at by an operator.
  if (server.provisioningState === 'failed') return [];
  const drifts = (await world.servers.listDrifts(systemActor, null)).filter((one) => one.guest === guest);
  const named = (kind: string) => drifts.some((one) => one.kind === kind);
  const found = model.inspect(guest);
  if (found === null) return named('missing') ? [] : ['the guest is gone'];
  const wrong: string[] = [];
  const nodeIds = (await world.clusters.listNodes(systemActor, null)).map(({ id }) => id);
  const sold = (await listSoldServers(world.db(), nodeIds)).find(({ id }) => id === serverId)!;
  const unlike = (what: string, there: unknown, here: unknown) => {
    if (String(there) !== String(here)) wrong.push(`${what}: ${there} at the node, ${here} in the rows`);
  };
  if (!named('size')) unlike('size', [found.vcpus, found.memoryMb], [sold.vcpus, sold.memoryMb]);
  // A disk is never made smaller.
  if (found.diskGb < server.diskGb) unlike('disk', found.diskGb, server.diskGb);
  // One whose attachment ended with an error may be there or not.
  if (sold.isSettled && !named('interfaces')) unlike('interfaces', found.macs.toSorted(), sold.macs);
  unlike('image', found.image, server.imageSlug);
  unlike('rescue', found.rescue, server.isRescued ? 'rescue-13' : null);
  const { live, config } = model.domains.get(guest)!;
  unlike('ISO', config.includes("volume='tools.iso'"), server.iso !== null);
  unlike('power', live === null ? 'stopped' : 'running', server.powerState);
  if (live !== null && !live.includes(`'${found.disk}'`)) wrong.push('it runs on another disk');
  unlike('addresses', found.addresses.toSorted(), server.addresses.map(({ address }) => address).toSorted());
  // An old disk that was not deleted goes with the next rebuild or rescue, or with the guest.
  const actions = await world.servers.listActions(systemActor, null, serverId, 50);
  const hasFailed = (wanted: RegExp) =>
    actions.some(({ command, status }) => wanted.test(command) && status === 'error');
  const left = model
    .listLeftovers()
    .filter(
      (one) =>
        /\.(qcow2|iso)$/.test(one) &&
        !/-rescue-/.test(one) &&
        !(hasFailed(/^rebuild$/) && /^vm-\d+(-r\d+)?\.qcow2$/.test(one) && one !== found.disk),
    );
  const rescues = model.listLeftovers().filter((one) => /-rescue-/.test(one));
  if (!hasFailed(/rescue$/)) unlike('rescue volumes', rescues.length, server.isRescued ? 2 : 0);
  unlike('volumes', left.toSorted(), [found.disk, `${guest}-seed.iso`].toSorted());
  return wrong;
}

export async function runLives(bug: Planted | null, { n, seed, report }: Options): Promise<string[]> {
  return withSite(bug, async (site) => {
    const all: string[] = [];
    for (let i = 0; i < n; i += 1) {
      const number = seed * 100_000 + i;
      const wrong = await live(site, seededRandom(number));
      for (const one of wrong) report(`FAULT in life ${number}: ${one}`);
      all.push(...wrong);
      if (wrong.length > 0) {
        if (bug !== null) break;
        site.model.clear();
      }
      if (i % 100 === 99) report(`${i + 1} lives`);
    }
    return all;
  });
}

/** One life, by the number in the report of its fault. */
export async function replay({ only, report }: { only: number; report: (line: string) => void }) {
  const wrong = await withSite(null, (site) => live(site, seededRandom(only)));
  for (const one of wrong) report(`FAULT: ${one}`);
  return { failures: wrong.length };
}

/** A driver with a bug is given this many lives to show it; some need two hundred, by the seed. */
const plantedLives = 400;

export async function prove(options: Options) {
  const wrong = await runLives(null, options);
  const missed: string[] = [];
  for (const bug of planted)
    if ((await runLives(bug, { ...options, n: plantedLives, report: () => {} })).length === 0)
      missed.push(bug);
  for (const bug of missed) options.report(`NOT CAUGHT ${bug} that takes a fault for its success`);
  return {
    claim:
      'where virsh fails, hangs and lies, a node holds what the rows say, or the comparison names the difference, and nothing of a destroyed server',
    tried: options.n,
    failures: wrong.length,
    plantedBugsCaught: `${planted.length - missed.length} of ${planted.length}`,
  };
}
