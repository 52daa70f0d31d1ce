/**
 * `npm run prove -- guard`: guests of the lab and of libvirt forge without a pause while their addresses come and go, in `n` orders; nothing
 * forged and nothing of a released address is seen behind their guards.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { seededRandom } from '#common/random/index.ts';
import { drawOrder, type GuardedPort, guardOrders, runGuardOrder } from '#lab/testing/guard-orders.ts';
import { labPort, startPair } from '#lab/testing/lab-port.ts';
import { makeDataDir } from '#lab/testing/lab-tests.ts';
import { createLibvirtWorld } from '#operations/hypervisors/testing/libvirt-world.ts';
import { plugLibvirtGuest } from './testing/libvirt-port.ts';

export const name = 'guard';

/** Guards with a hole, each through one order. */
const holes: Record<string, (port: GuardedPort) => GuardedPort> = {
  'a guard that is off': (port) => ({
    ...port,
    async setAddresses(addresses) {
      await port.setAddresses(addresses);
      await port.setGuard(false);
    },
  }),
  'a guard that is off while it changes': (port) => ({
    ...port,
    async setAddresses(addresses) {
      await port.setGuard(false);
      await port.setAddresses(addresses);
      await port.setGuard(true);
    },
  }),
  'a released address that may still send': (port) => {
    const held = new Set<string>();
    return {
      ...port,
      setAddresses(addresses) {
        for (const address of addresses) held.add(address);
        return port.setAddresses([...held]);
      },
    };
  },
  'an attached address that may not send': (port) => ({
    ...port,
    setAddresses: (addresses) => port.setAddresses(addresses.slice(0, 1)),
  }),
};

interface Options {
  n: number;
  seed: number;
  report(line: string): void;
}

export async function prove({ n, seed, report }: Options) {
  const random = seededRandom(seed);
  const orders = Array.from({ length: n }, (_, i) => guardOrders[i] ?? drawOrder(random));
  const ends: (() => unknown)[] = [];
  const scope = { after: (end: () => unknown) => ends.push(end) };
  let tried = 0;
  let kinds = 0;
  let failures = 0;
  const missed: string[] = [];
  const planted = Object.entries(holes);
  try {
    const dataDir = makeDataDir(scope);
    const lab = labPort(await startPair(scope, dataDir), dataDir);
    const world = await createLibvirtWorld({ hasGuardHook: true });
    scope.after(() => world[Symbol.asyncDispose]());
    const folder = mkdtempSync(join(tmpdir(), 'svc-guard-'));
    scope.after(() => rmSync(folder, { recursive: true, force: true }));
    const libvirt = await plugLibvirtGuest(scope, world, folder);
    libvirt.consultRules(false);
    for (const [driver, port] of Object.entries({ lab, libvirt })) {
      for (const [i, order] of orders.entries()) {
        const result = await runGuardOrder(port, order);
        tried += result.judged;
        kinds = Math.max(kinds, result.kinds);
        failures += result.faults.length;
        for (const fault of result.faults) report(`FAULT ${driver}, order ${i}: ${fault}`);
        if (i % 10 === 9) report(`${driver}: ${i + 1} orders`);
      }
      for (const [hole, make] of planted) {
        const { faults } = await runGuardOrder(make(port), guardOrders[0]!);
        await port.setGuard(true);
        if (faults.length === 0) missed.push(`${driver}: ${hole}`);
      }
    }
  } finally {
    for (const end of ends.toReversed()) await end();
  }
  for (const hole of missed) report(`NOT CAUGHT ${hole}`);
  return {
    claim: `of frames of ${kinds} forged kinds none leaves its guest while addresses are attached and released in ${n} orders on both drivers, and ordinary ones do`,
    tried,
    failures,
    plantedBugsCaught: `${2 * planted.length - missed.length} of ${2 * planted.length}`,
  };
}
