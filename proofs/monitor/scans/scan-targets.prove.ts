/**
 * Proof of which addresses are scanned (NET-2.7.8): random nodes with stopped, old, retired, foreign and ambiguous servers,
 * with private and shared addresses and those of hosts, and with sources that are down, of the other family or on another
 * interface. The plan that a sensor gets names exactly the addresses that a second, plain computation names, each from one of
 * its sources.
 */
import { seededRandom } from '#common/random/index.ts';
import type { ScanPlan } from '#contracts/sensor-api/port-scans.ts';
import { type InventoryStage, startInventoryStage } from './inventory-stage.ts';
import { listPlainTargets, type PlainReason, type PlainTarget } from './plain-targets.ts';
import { makePlantedPlan, type Plant, plants } from './planted-targets.ts';
import { makeInventory, type Random, type RandomInventory } from './random-inventory.ts';

export const name = 'scan-targets';
export const plantedFaults = plants;

/** Nodes of one batch; those of different slots share no public address. */
const slots = 200;
const atOnce = 3;
/** Nodes that a planted fault is tried with at most. */
const plantedNodes = 2_000;

export interface ScanTargetsOptions {
  /** Number of random nodes. */
  n: number;
  seed: number;
  report(line: string): void;
}

type Target = Pick<
  ScanPlan['targets'][number],
  'vm_id' | 'nic_id' | 'address' | 'interface' | 'source_address'
>;

export async function prove({ n, seed, report }: ScanTargetsOptions) {
  await using stage = await startInventoryStage(Math.min(slots, n));
  const { scans } = stage.server.monitor;
  const count: Count = { planned: 0, left: new Map() };
  const faults: string[] = [];
  let done = 0;
  const random = seededRandom(seed);
  while (done < n) {
    const batch = await storeRandom(stage, random, n - done);
    await eachAtOnce(batch, async (inventory, slot) => {
      const { targets } = await scans.readPlan(stage.sensors[slot]!);
      for (const fault of compare(inventory, targets, count))
        faults.push(`node ${done + slot + 1}: ${fault}`);
    });
    done += batch.length;
    if (done % 2_000 === 0)
      report(`${done} nodes, ${count.planned} addresses planned, ${faults.length} faults`);
  }
  for (const fault of faults.slice(0, 20)) report(fault);
  const left = [...count.left].map(([why, times]) => `${times} ${why}`).join(', ');
  report(`${count.planned} addresses were to be planned; left out: ${left}`);
  let caught = 0;
  for (const plant of plants) {
    const found = await findPlanted(stage, plant, Math.min(n, plantedNodes));
    report(`planted ${plant}: ${found ?? 'NOT NOTICED'}`);
    if (found !== null) caught += 1;
  }
  return {
    claim: `random nodes: the scan plan names exactly the ${count.planned} addresses that a second computation names, and leaves out the other ${[...count.left.values()].reduce((a, b) => a + b, 0)}`,
    tried: n,
    failures: faults.length,
    plantedBugsCaught: `${caught} of ${plants.length}`,
  };
}

/** What was to be planned and left out. */
interface Count {
  planned: number;
  left: Map<PlainReason, number>;
}

async function storeRandom(stage: InventoryStage, random: Random, most: number): Promise<RandomInventory[]> {
  const batch = Array.from({ length: Math.min(stage.sensors.length, most) }, (_, slot) =>
    makeInventory(random, slot),
  );
  await stage.store(batch);
  return batch;
}

async function eachAtOnce<T>(
  list: readonly T[],
  work: (item: T, place: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const workers = Array.from({ length: atOnce }, async () => {
    for (let place = next++; place < list.length; place = next++) await work(list[place]!, place);
  });
  await Promise.all(workers);
}

/** What is wrong with the targets of a plan. */
function compare(inventory: RandomInventory, planned: readonly Target[], count: Count | null): string[] {
  const { targets, left } = listPlainTargets(inventory);
  if (count) {
    count.planned += targets.length;
    for (const [why, times] of left) count.left.set(why, (count.left.get(why) ?? 0) + times);
  }
  const keyOf = (vmId: number, nicId: number, address: string) =>
    `server ${vmId}, interface ${nicId}, ${address}`;
  const meant = new Map<string, PlainTarget>(
    targets.map((one) => [keyOf(one.vmId, one.nicId, one.address), one]),
  );
  const faults: string[] = [];
  for (const one of planned) {
    const key = keyOf(one.vm_id, one.nic_id, one.address);
    const source = `${one.interface} ${one.source_address}`;
    const target = meant.get(key);
    meant.delete(key);
    if (!target) faults.push(`${key} is planned and must not be`);
    else if (!target.sources.includes(source))
      faults.push(`${key} is scanned from ${source}, not ${target.sources}`);
  }
  for (const key of meant.keys()) faults.push(`${key} is missing`);
  return faults;
}

/** The first offence of a plan with this fault; null where none is noticed. */
async function findPlanted(stage: InventoryStage, plant: Plant, most: number): Promise<string | null> {
  const random = seededRandom(plants.indexOf(plant) + 1_000);
  const reader = () => stage.server.database.reader;
  for (let done = 0; done < most; ) {
    const batch = await storeRandom(stage, random, most - done);
    for (const [slot, inventory] of batch.entries()) {
      const planned = await makePlantedPlan(reader(), stage.sensors[slot]!.id, plant);
      const fault = compare(inventory, planned, null)[0];
      if (fault !== undefined) return `${fault} (node ${done + slot + 1})`;
    }
    done += batch.length;
  }
  return null;
}
