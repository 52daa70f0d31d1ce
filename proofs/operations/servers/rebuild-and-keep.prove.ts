/**
 * `npm run prove -- rebuild-and-keep`: `n` servers are made, rebuilt, resized, given addresses, kept as snapshots, restored and copied by
 * processes that are killed at any statement or command of the node. After each change the server has its id, addresses, firewall and
 * price, the node holds what the rows say, the hour is charged once at its highest price, and the disks of others are as they were.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { CodedError, describeError } from '#common/errors/index.ts';
import { seededRandom } from '#common/random/index.ts';
import { systemActor, type Tenant } from '#operations/accounts/index.ts';
import { ensureImage, ensurePlan } from '#operations/catalog/index.ts';
import { guestName } from '#operations/hypervisors/index.ts';
import { createLibvirtDriver } from '#operations/hypervisors/libvirt/driver.ts';
import { complaintOf, type Virsh } from '#operations/hypervisors/libvirt/run-virsh.ts';
import { node } from '#operations/hypervisors/testing/example-guest.ts';
import { createModelNode, type ModelNode } from '#operations/hypervisors/testing/model-node.ts';
import { chargeServerHours } from '#operations/servers/index.ts';
import { createWorld, type World } from '#operations/testing/dated-world.ts';
import type { FromWorker, ToWorker, WorkerBug } from './keep-worker.ts';

export const name = 'rebuild-and-keep';

/** `stranger`: the node gives a rebuilt guest the disk of another. */
type Planted = WorkerBug | 'stranger';
const planted: readonly Planted[] = ['halves', 'anew', 'stranger'];
/** Histories that a planted bug is given to show. */
const plantedHistories = 12;

const images = ['debian-12', 'debian-13'];
const sizes = {
  small: { vcpus: 1, memoryMb: 2_048, diskGb: 20, hourlyQuanta: 60 },
  wide: { vcpus: 2, memoryMb: 4_096, diskGb: 20, hourlyQuanta: 150 },
  large: { vcpus: 2, memoryMb: 4_096, diskGb: 80, hourlyQuanta: 200 },
};
type PlanSlug = keyof typeof sizes;

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
}

interface Site {
  world: World;
  model: ModelNode;
  virsh: Virsh;
  bug: Planted | null;
  /** The one that works next, and one that starts meanwhile. */
  workers: Promise<ChildProcess>[];
  kills: number;
  /** How many steps each kind of change takes. */
  lengths: Map<string, number>;
}

/** What the server has to be. */
interface Wanted {
  serverId: number;
  image: string;
  plan: PlanSlug;
  diskGb: number;
  power: 'running' | 'stopped';
  addresses: string[];
  /** Of the action that made the disk; 0: the first one. */
  disk: number;
  spentQuanta: number;
}

async function startWorker({ world, bug }: Pick<Site, 'world' | 'bug'>): Promise<ChildProcess> {
  const file = fileURLToPath(new URL('./keep-worker.ts', import.meta.url));
  const given = bug === null || bug === 'stranger' ? [] : [bug];
  const child = fork(file, [world.database.url, ...given], { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  await once(child, 'message');
  return child;
}

/** A worker does what is due; true when it was killed over it. */
async function work(site: Site, kind: string, dieAt: number, isAfter: boolean): Promise<boolean> {
  const child = await site.workers[0]!;
  const send = (message: ToWorker) => {
    // One that is dead by now needs no answer.
    if (child.connected) child.send(message, () => {});
  };
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const onExit = () => resolve(true);
  const onMessage = async (message: FromWorker) => {
    if (message.kind === 'command') {
      const { id, command } = message;
      const answer = await site.virsh(command).then(
        (said) => ({ said, isRefused: false }),
        (error: unknown) => ({ said: complaintOf(error) || describeError(error), isRefused: true }),
      );
      send({ kind: 'answer', id, ...answer });
    }
    if (message.kind !== 'worked') return;
    if (dieAt < 0 || message.steps < dieAt)
      site.lengths.set(kind, Math.max(site.lengths.get(kind) ?? 0, message.steps));
    resolve(false);
  };
  child.on('exit', onExit).on('message', onMessage);
  send({ kind: 'work', dieAt, isAfter });
  const isKilled = await promise;
  child.off('exit', onExit).off('message', onMessage);
  if (isKilled) {
    site.kills += 1;
    site.workers = [site.workers[1]!, startWorker(site)];
  }
  return isKilled;
}

/** What a dead worker held is free after its claim; here that is told instead of waited for. */
const release = ({ world }: Site) =>
  world.database.pool.query(
    'update jobs set run_at = svc_now(), claimed_until = null where finished_at is null',
  );

/** Works on what was asked for, with up to two deaths, until nothing is left to do. */
async function settle(site: Site, kind: string, random: () => number): Promise<string[]> {
  const deaths: string[] = [];
  for (const chance of [0.75, 0.25]) {
    if (random() > chance) continue;
    const dieAt = 1 + Math.floor(random() * (site.lengths.get(kind) ?? 60));
    const isAfter = random() < 0.5;
    await release(site);
    if (await work(site, kind, dieAt, isAfter)) deaths.push(`${isAfter ? 'after' : 'before'} step ${dieAt}`);
  }
  for (let pass = 0; pass < 8; pass += 1) {
    if ((await release(site)).rowCount === 0) break;
    await work(site, kind, -1, false);
    await site.world.jobs.drain();
  }
  return deaths;
}

async function withSite<T>(bug: Planted | null, use: (site: Site) => Promise<T>): Promise<T> {
  const model = createModelNode(images);
  const virsh: Virsh = async (command) => {
    const said = await model.virsh(command);
    if (bug === 'stranger' && command[0] === 'define')
      for (const domain of model.domains.values())
        domain.config = domain.config.replace(/vm-\d+-r\d+\.qcow2/, `${[...model.domains.keys()][0]}.qcow2`);
    return said;
  };
  const driver = createLibvirtDriver({ ...node, uri: 'qemu:///system' }, { virsh });
  await using world = await createWorld({ hypervisor: () => driver, addressesMax: 50 });
  const { db, pool } = world.database;
  await ensureImage(db, { slug: 'debian-13', name: 'Debian 13', family: 'debian' });
  for (const slug of ['wide', 'large'] as const)
    await ensurePlan(db, { slug, name: slug, ...sizes[slug], monthlyCapQuanta: 120_000 });
  await pool.query(
    `update address_pools set prefix = '203.0.0.0/16', gateway = '203.0.0.1', first_address = '203.0.0.10', last_address = '203.0.255.250'
     where family(first_address) = 4`,
  );
  const site: Site = { world, model, virsh, bug, workers: [], kills: 0, lengths: new Map() };
  site.workers = [startWorker(site), startWorker(site)];
  try {
    return await use(site);
  } finally {
    for (const child of await Promise.all(site.workers)) {
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
  }
}

const rule = {
  direction: 'inbound',
  action: 'accept',
  protocol: 'tcp',
  ports: '22',
  description: '',
} as const;

/** One server's life; what was wrong with it. */
async function live(site: Site, others: string, random: () => number): Promise<string[]> {
  const { world, model } = site;
  const { servers, addresses } = world;
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;
  const said: string[] = [];
  const wrong: string[] = [];
  const left = model.listLeftovers();
  const { tenant } = await world.createCustomer('Keep');

  const { serverId } = await world.ordering.createServer(systemActor, {
    ...{ tenantId: tenant.id, plan: 'small', image: 'debian-12', name: 'keep' },
  });
  said.push('create', ...(await settle(site, 'create', random)));
  await chargeServerHours(world.database.db);
  await world.firewalls.changeFirewall(systemActor, serverId, null, {
    ...{ kind: 'replace', isEnabled: true, inbound: 'drop', outbound: 'accept' },
    rules: [{ ...rule, peers: [`192.0.2.${1 + Math.floor(random() * 250)}`] }],
  });
  if (random() < 0.5) {
    const network = await world.networks.createNetwork(systemActor, { tenantId: tenant.id, name: 'keep' });
    await world.networks.attachServer(systemActor, null, { serverId, networkId: network.id });
  }
  const kept: { id: number; address: string; isAttached: boolean }[] = [];
  for (let i = 0; i < 2; i += 1) {
    const { id, address } = await addresses.reserveAddress(systemActor, { tenantId: tenant.id });
    kept.push({ id, address, isAttached: false });
  }
  await world.jobs.drain();
  const first = (await servers.findServer(systemActor, null, serverId))!;
  const wanted: Wanted = {
    ...{ serverId, image: 'debian-12', plan: 'small', diskGb: 20, power: 'running', disk: 0 },
    ...{ addresses: first.addresses.map(({ address }) => address), spentQuanta: sizes.small.hourlyQuanta },
  };
  const look = { wanted, filters: filtersOf(site, serverId), others };
  const snapshots: { id: number; image: string; diskGb: number }[] = [];
  const steps: Record<string, () => Promise<number | null>> = {
    async rebuild() {
      const image = pick(images);
      const { action } = await servers.rebuildServer(systemActor, null, serverId, { image });
      Object.assign(wanted, { image, power: 'running', disk: action.id });
      return action.id;
    },
    async resize() {
      const fitting = Object.keys(sizes) as PlanSlug[];
      const plan = pick(fitting.filter((slug) => sizes[slug].diskGb >= wanted.diskGb));
      const keepDisk = random() < 0.5;
      const { action } = await servers.resizeServer(systemActor, null, serverId, { plan, keepDisk });
      const diskGb = keepDisk ? wanted.diskGb : sizes[plan].diskGb;
      // All of it happens in one hour, which costs the highest of its prices once.
      const spentQuanta = Math.max(wanted.spentQuanta, sizes[plan].hourlyQuanta);
      Object.assign(wanted, { plan, diskGb, spentQuanta });
      return action.id;
    },
    async attach() {
      const free = kept.find(({ isAttached }) => !isAttached);
      if (free === undefined) return null;
      const { id } = await servers.attachAddress(systemActor, tenant.id, { serverId, addressId: free.id });
      free.isAttached = true;
      wanted.addresses.push(free.address);
      return id;
    },
    async detach() {
      const held = kept.find(({ isAttached }) => isAttached);
      if (held === undefined) return null;
      const { id } = await servers.detachAddress(systemActor, tenant.id, held.id);
      held.isAttached = false;
      wanted.addresses = wanted.addresses.filter((address) => address !== held.address);
      return id;
    },
    async snapshot() {
      if (snapshots.length === 3) {
        await servers.deleteSnapshot(systemActor, null, snapshots.shift()!.id);
        return null;
      }
      const { id, actionId } = await servers.createSnapshot(systemActor, null, serverId, undefined);
      snapshots.push({ id, image: wanted.image, diskGb: wanted.diskGb });
      return actionId;
    },
    async restore() {
      if (snapshots.length === 0) return null;
      const { id, image } = pick(snapshots);
      const { action } = await servers.restoreSnapshot(systemActor, null, id);
      Object.assign(wanted, { image, disk: action.id });
      return action.id;
    },
    async copy() {
      if (snapshots.length === 0) return null;
      const { id: snapshotId, image, diskGb } = pick(snapshots);
      const plan = diskGb > sizes.small.diskGb ? 'large' : 'small';
      const order = { tenantId: tenant.id, plan, snapshotId };
      const { serverId: copyId } = await world.ordering.createServer(systemActor, order);
      said.push(...(await settle(site, 'copy', random)));
      const copy = await servers.findServer(systemActor, null, copyId);
      const found = model.inspect(guestName(copyId));
      if (copy?.powerState !== 'running' || found?.image !== image || found.backing !== null)
        wrong.push(`the copy is ${JSON.stringify([copy?.provisioningState, copy?.powerState, found])}`);
      await servers.destroyServer(systemActor, null, copyId);
      said.push('destroy', ...(await settle(site, 'destroy', random)));
      wrong.push(...model.listLeftovers().filter((one) => one.startsWith(`${guestName(copyId)}`)));
      return null;
    },
    async stop() {
      wanted.power = 'stopped';
      return (await servers.changePower(systemActor, null, serverId, { command: 'stop' })).id;
    },
    async start() {
      wanted.power = 'running';
      return (await servers.changePower(systemActor, null, serverId, { command: 'start' })).id;
    },
  };
  const kinds = [
    ...['rebuild', 'rebuild', 'resize', 'resize', 'attach', 'attach', 'detach', 'stop', 'start'],
    ...['snapshot', 'snapshot', 'restore', 'copy'],
  ];
  wrong.push(...(await compare(site, tenant, look)));
  for (let step = 0; step < 8 && wrong.length === 0; step += 1) {
    const kind = pick(kinds);
    said.push(kind);
    let actionId: number | null;
    try {
      actionId = await steps[kind]!();
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      return [`${kind} is refused: ${error.code} ${error.message}; ${said.join(', ')}`];
    }
    if (actionId === null) continue;
    said.push(...(await settle(site, kind, random)));
    const action = await servers.findAction(systemActor, null, actionId);
    if (action?.status !== 'success') wrong.push(`${kind} ended as ${JSON.stringify(action)}`);
    wrong.push(...(await compare(site, tenant, look)));
  }
  if (wrong.length === 0) {
    await servers.destroyServer(systemActor, null, serverId);
    said.push('destroy', ...(await settle(site, 'destroy', random)));
    if ((await servers.findServer(systemActor, null, serverId)) !== null) wrong.push('the server is there');
    for (const { id } of kept) await addresses.releaseAddress(systemActor, { tenantId: tenant.id, id });
    // The segment of a network stays as long as the network does.
    const more = model.listLeftovers().filter((one) => !left.includes(one) && !/^svc-pn-\d+$/.test(one));
    wrong.push(...more.map((one) => `left: ${one}`));
    if (othersOf(site) !== others) wrong.push('the destruction has changed another’s guest');
  }
  return wrong.map((one) => `${one}; ${said.join(', ')}`);
}

/** What filters a guest, without the addresses of its guard. */
const filtersOf = ({ model }: Site, serverId: number) =>
  JSON.stringify(
    [...model.filters].filter(
      ([filter]) => filter.startsWith(`svc-vm-${serverId}`) && !filter.endsWith('-guard'),
    ),
  );

/** Everything of the guests of others, and of their disks. */
const othersOf = ({ model }: Site) =>
  JSON.stringify(
    [...model.domains.keys()]
      .slice(0, bystanders)
      .map((guest) => [model.inspect(guest), model.domains.get(guest)]),
  );

async function compare(
  site: Site,
  tenant: Tenant,
  { wanted, filters, others }: { wanted: Wanted; filters: string; others: string },
): Promise<string[]> {
  const { world, model } = site;
  const { serverId, plan } = wanted;
  const guest = guestName(serverId);
  const server = await world.servers.findServer(systemActor, null, serverId);
  const found = model.inspect(guest);
  if (server === null || found === null) return [`the ${server === null ? 'server' : 'guest'} is gone`];
  const wrong: string[] = [];
  const unlike = (what: string, is: unknown, has: unknown) => {
    if (JSON.stringify(is) !== JSON.stringify(has))
      wrong.push(`${what}: ${JSON.stringify(is)} instead of ${JSON.stringify(has)}`);
  };
  const { vcpus, memoryMb, hourlyQuanta } = sizes[plan];
  const sorted = wanted.addresses.toSorted();
  unlike('action', server.currentAction, null);
  unlike('row', [server.imageSlug, server.planSlug, server.diskGb], [wanted.image, plan, wanted.diskGb]);
  unlike('price', server.hourlyQuanta, hourlyQuanta);
  unlike('power', server.powerState, wanted.power);
  unlike('addresses', server.addresses.map(({ address }) => address).toSorted(), sorted);
  unlike('image of the disk', found.image, wanted.image);
  unlike('size', [found.vcpus, found.memoryMb, found.diskGb], [vcpus, memoryMb, wanted.diskGb]);
  unlike('addresses of the guest', found.addresses.toSorted(), sorted);
  unlike('NICs', found.macs.length, 1 + server.privateNetworks.length);
  unlike('guest', model.domains.get(guest)!.live === null ? 'stopped' : 'running', wanted.power);
  unlike('firewall', filtersOf(site, serverId), filters);
  unlike('disk', found.disk, `${guest}${wanted.disk === 0 ? '' : `-r${wanted.disk}`}.qcow2`);
  const volumes = model
    .listLeftovers()
    .filter((one) => (one.startsWith(`${guest}-`) && !/-s\d+\.qcow2$/.test(one)) || one === `${guest}.qcow2`);
  unlike('volumes', volumes.toSorted(), [found.disk, `${guest}-seed.iso`].toSorted());
  unlike('guests of others', othersOf(site), others);
  const entries = await world.billing.listEntries(systemActor, tenant.id, 100);
  const spent = entries.reduce((sum, { amountQuanta }) => sum + Math.max(0, -amountQuanta), 0);
  unlike('charge', spent, wanted.spentQuanta);
  return wrong;
}

/** Servers of another that nothing happens to. */
const bystanders = 2;

export async function runHistories(bug: Planted | null, { n, seed, report }: Options) {
  return withSite(bug, async (site) => {
    const { tenant } = await site.world.createCustomer('Others');
    for (let i = 0; i < bystanders; i += 1) await site.world.deploy(tenant, `other-${i}`);
    const others = othersOf(site);
    const faults: string[] = [];
    for (let i = 0; i < n; i += 1) {
      const wrong = await live(site, others, seededRandom(seed * 100_000 + i));
      for (const one of wrong) report(`FAULT in history ${i}: ${one}`);
      faults.push(...wrong);
      if (wrong.length > 0) break;
      if (i % 25 === 24) report(`${i + 1} histories, ${site.kills} processes killed`);
    }
    return { faults, kills: site.kills };
  });
}

export async function prove(options: Options) {
  const { faults, kills } = await runHistories(null, options);
  let caught = 0;
  for (const bug of planted) {
    const found = await runHistories(bug, { ...options, n: plantedHistories, report: () => {} });
    if (found.faults.length > 0) caught += 1;
    else options.report(`NOT CAUGHT: ${bug}`);
  }
  return {
    claim: `a server that is rebuilt, resized and moved to other addresses keeps what it has (${kills} processes killed)`,
    tried: options.n,
    failures: faults.length,
    plantedBugsCaught: `${caught} of ${planted.length}`,
  };
}
