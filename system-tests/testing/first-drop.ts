/**
 * Measures from the first packet of a flood to the first that the filter drops: a sensor as its own program on a veth, its monitor with all
 * loops over HTTP, and a rule that drops at once. Needs root.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { filterRulesOfAddress } from '#contracts/sensor-api/filter.ts';
import { systemActor } from '#monitor/operators/index.ts';
import { startMonitorServer } from '#monitor/testing/server.ts';
import { detachCounter, findFiltered, preparePins } from '#sensor/kernel/attachment.ts';
import { detachFilter } from '#sensor/kernel/filter.ts';
import { countBytes, filterSettingsBytes, sumCounts } from '#sensor/kernel/filter-layout.ts';
import { closeAll, libbpf, must } from '#sensor/kernel/libbpf.ts';
import type { FloodClass } from '#sensor/testing/attack-traffic.ts';
import { uniqueName } from '#sensor/testing/link-names.ts';

const program = fileURLToPath(new URL('../../svc.ts', import.meta.url));
const peers = fileURLToPath(new URL('../../sensor/testing/filter-peers.ts', import.meta.url));
const node = [process.execPath, '--disable-warning=ExperimentalWarning'] as const;
const target = '192.0.2.7';
const pollMs = 20;
const patienceMs = 60_000;
/** In packets a second: low, so that a busy machine sends enough. */
const threshold = '500';
const kpps = 4;
const learnedForNs = 120_000_000_000n;

/** Milliseconds from the first packet that comes in. */
export async function measureFirstDrop(attack: FloodClass): Promise<number> {
  await using undo = new AsyncDisposableStack();
  const [here, there] = [uniqueName(), uniqueName()];
  execFileSync('ip', ['link', 'add', here, 'type', 'veth', 'peer', 'name', there]);
  undo.defer(() => {
    detachFilter(here);
    detachCounter(here);
    spawnSync('ip', ['link', 'del', here]);
    preparePins([], { uid: 0, gid: 0 });
  });
  for (const end of [here, there]) {
    spawnSync('sh', ['-c', `echo 1 > /proc/sys/net/ipv6/conf/${end}/disable_ipv6`]);
    execFileSync('ip', ['link', 'set', end, 'arp', 'off', 'up']);
  }
  const folder = mkdtempSync(join(tmpdir(), 'svc-first-drop-'));
  undo.defer(() => rmSync(folder, { recursive: true, force: true }));
  const server = undo.use(await startMonitorServer());
  const token = await prepareSite(server);
  for (const loop of server.monitor.loops) {
    await loop.start();
    undo.defer(() => loop.stop());
  }
  const sensor = startSensor({ here, url: server.url, folder, token });
  undo.defer(() => end(sensor.child));
  await sensor.says('plan taken', 'attacks can be dropped', 'the kernel counts');
  await until('the filter has learned for two minutes', () => hasLearned(here));
  const flooding = spawn(
    node[0],
    [node[1], peers, 'flood', there, macOf(here), attack, String(kpps * 60_000), String(kpps)],
    {
      stdio: 'ignore',
    },
  );
  undo.defer(() => void flooding.kill('SIGKILL'));
  const received = () => Number(readFileSync(`/sys/class/net/${here}/statistics/rx_packets`, 'utf8'));
  const before = received();
  await until('the flood begins', () => received() > before);
  const began = performance.now();
  await until('a packet is dropped', () => readDropped(here) > 0);
  return performance.now() - began;
}

/** A site with the address, low thresholds and a rule of filters. Returns a token for its sensor. */
async function prepareSite({ monitor, siteId, database }: Awaited<ReturnType<typeof startMonitorServer>>) {
  await monitor.sites.setLocalCidrs(systemActor, siteId, ['192.0.2.0/24']);
  await monitor.sites.mapCluster(systemActor, 7, siteId);
  await database.pool.query(
    `insert into allocation_targets (allocation_id, billing_account_id, virtual_machine_id, cluster_id, address, assigned_at, is_supported)
     values (1, 1, 1, 7, $1, '2026-01-01T00:00:00Z', true)`,
    [target],
  );
  await database.pool.query(
    `insert into inventory_vms (cluster_id, vm_id, node, name, state, updated_at)
     values (7, 1, 'hv-1', 'server-1', 'running', svc_now())`,
  );
  await database.pool.query(
    `insert into vm_placements (cluster_id, vm_id, node, mac, segment, address, is_unique, began_at)
     values (7, 1, 'hv-1', '52:54:00:00:00:01', 'br0', $1, true, '-infinity')`,
    [target],
  );
  const inbound = { pps: threshold, udp_pps: threshold, syn_pps: threshold };
  await monitor.protection.setSiteThresholds(systemActor, siteId, { inbound, outbound: {} }, 0);
  const rule = await monitor.handOff.addRule(systemActor, siteId, {
    ...{ name: 'Filter', kind: 'filter', prefixes: ['192.0.2.0/24'], direction: 'inbound' },
    ...{ minPps: '', minBps: '', holdSeconds: '60', countSeconds: '0' },
  });
  for (const mode of ['dry_run', 'on'] as const) {
    const { rules } = await monitor.handOff.describeSite(siteId);
    await monitor.handOff.switchRule(systemActor, siteId, rule.id, mode, rules[0]!.revision);
  }
  return (await monitor.sensors.createToken(systemActor, siteId)).token;
}

function startSensor(of: { here: string; url: string; folder: string; token: string }) {
  const child = spawn(node[0], [node[1], program, 'sensor', 'run'], {
    env: {
      PATH: process.env.PATH,
      SVC_MONITOR_URL: of.url,
      SVC_SENSOR_STATE_DIR: join(of.folder, 'state'),
      SVC_SENSOR_CAPTURES: `uplink:${of.here}`,
      SVC_SENSOR_ENROLMENT_TOKEN: of.token,
      SVC_SENSOR_NODE: 'hv-1',
      SVC_SENSOR_FILTER: '1',
      SVC_SENSOR_PORT_SCANS: '0',
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  child.stderr!.on('data', (piece: Buffer) => {
    text += piece.toString();
  });
  return {
    child,
    says: (...phrases: string[]) =>
      until('the sensor starts', () => phrases.every((phrase) => text.includes(phrase))).catch((error) => {
        throw new Error(text, { cause: error });
      }),
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill('SIGTERM');
  await once(child, 'exit');
}

async function until(what: string, isTrue: () => boolean): Promise<void> {
  const started = performance.now();
  while (!isTrue()) {
    if (performance.now() - started > patienceMs) throw new Error(`It did not happen: ${what}.`);
    await wait(pollMs);
  }
}

/** Makes it so that the filter has learned for two minutes who converses: younger ones only count. True once it stays so. */
function hasLearned(name: string): boolean {
  const bpf = libbpf();
  const map = must(bpf.openPinned(`${findFiltered(name).pinFolder}/settings`), 'open the settings');
  const [key, value] = [Buffer.alloc(4), Buffer.alloc(filterSettingsBytes)];
  must(bpf.lookup(map, key, value), 'read the settings');
  const hasPassed = process.hrtime.bigint() - value.readBigInt64LE(8) > learnedForNs;
  value.writeBigInt64LE(value.readBigInt64LE(8) - learnedForNs, 8);
  if (!hasPassed) must(bpf.update(map, key, value, 0n), 'change the settings');
  closeAll([map]);
  return hasPassed;
}

/** Packets that any rule has dropped: the first rules have the first counters. */
function readDropped(name: string): number {
  const bpf = libbpf();
  const map = must(bpf.openPinned(`${findFiltered(name).pinFolder}/counts`), 'open the counters');
  const [key, values] = [Buffer.alloc(4), Buffer.alloc(countBytes * (bpf.cpus() as number))];
  let dropped = 0;
  for (let slot = 0; slot < filterRulesOfAddress; slot += 1) {
    key.writeUInt32LE(slot);
    must(bpf.lookup(map, key, values), 'read the counters');
    dropped += sumCounts(values).dropped.packets;
  }
  closeAll([map]);
  return dropped;
}

const macOf = (name: string) => readFileSync(`/sys/class/net/${name}/address`, 'utf8').trim();
