// Slow: starts a lab and switches guests on and off.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentReporter } from '#common/reporter/index.ts';
import { createLab } from '#lab/index.ts';
import { runTool } from '#lab/world/run-tool.ts';
import { createLabDriver } from '#operations/hypervisors/index.ts';
import { checkContract } from '#operations/hypervisors/testing/contract.ts';
import { guest, neighbour } from '#operations/hypervisors/testing/example-guest.ts';
import { needsRoot } from './testing/needs-root.ts';

test('the lab keeps the contract of drivers', needsRoot, async (t) => {
  const dataDir = mkdtempSync(join(tmpdir(), 'svc-lab-guests-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  const lab = createLab({ dataDir, reporter: silentReporter, outboundPerSecond: 0, inboundPerSecond: 0 });
  await lab.start();
  t.after(() => lab.stop());
  await checkContract(t, {
    driver: createLabDriver({ socketPath: lab.facts.control_socket }),
    guest,
    neighbour,
    otherImage: 'other',
    isBootable: true,
    knowsImages: false,
    async inspect(name) {
      const found = lab.list().find((one) => one.name === name);
      if (found === undefined) return null;
      const { image, rescue, drive, rebuild, size, mac, nics, addresses } = found;
      return {
        ...{ image, rescue: rescue.image, iso: drive.iso, disk: `rebuild ${rebuild}` },
        ...{ vcpus: size?.vcpus ?? null, memoryMb: size?.memoryMb ?? null, diskGb: size?.diskGb ?? null },
        addresses: addresses.map((entry) => entry.address),
        macs: [...(mac === null ? [] : [mac]), ...nics.map((nic) => nic.mac)],
      };
    },
    listLeftovers: async () => lab.list().map((one) => one.name),
    hasRootPassword: null,
    // As the kernel has it, of both ends of the link.
    async readSpeed(name) {
      const { interface: link, namespace, power, speedMbit } = lab.list().find((one) => one.name === name)!;
      if (power === 'off') return speedMbit;
      const rateOf = async (of: string, device: string) => {
        const shown = await runTool([
          'ip',
          'netns',
          'exec',
          of,
          'tc',
          '-j',
          'qdisc',
          'show',
          'dev',
          device,
          'root',
        ]);
        const [found] = JSON.parse(shown) as { kind: string; options?: { rate: number } }[];
        return found?.kind === 'tbf' ? found.options!.rate / 125_000 : null;
      };
      const inbound = await rateOf(lab.facts.hypervisor_namespace, link!);
      assert.equal(await rateOf(namespace, 'eth0'), inbound);
      return inbound;
    },
  });
});
