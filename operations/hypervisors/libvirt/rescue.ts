/**
 * Rescue of a libvirt guest: it starts from the volume `vm-<id>-rescue-<change>.qcow2`, a copy-on-write disk over a rescue image, with a
 * seed of its own, and has its own disk as the last one.
 *
 * The two swap places in the definition, so that the additions of an operator stay. A note in its metadata has the number of the last
 * change: a worker that slept through the end of a rescue does not begin it again.
 */
import { CodedError } from '#common/errors/index.ts';
import type { GuestDefinition } from '../guest.ts';
import { diskOf, isOff, noteChange, notedChange, readDefinition, redefine } from './change-guest.ts';
import { checked } from './domain-xml.ts';
import { tolerate, type Virsh } from './run-virsh.ts';
import { capacityOf, deleteVolume, makeVolumes, seedOf, volumesOf } from './volumes.ts';

/** See `HypervisorDriver.rescueGuest`; the guest is off afterwards, or runs where this rescue has begun already. */
export function beginRescue(call: Virsh, pool: string, guest: GuestDefinition, change: number) {
  const { name } = guest;
  const disk = checked('disk', `${name}-rescue-${change}.qcow2`);
  const seed = checked('seed', `${name}-rescue-${change}-seed.iso`);
  return swapDisks(call, pool, name, change, {
    async prepare() {
      try {
        await makeVolumes(call, pool, guest, disk, seed);
        await capacityOf(call, pool, disk);
      } catch (error) {
        for (const volume of [disk, seed]) await deleteVolume(call, pool, volume).catch(() => {});
        throw error;
      }
    },
    edit(xml) {
      const own = diskOf(xml, pool);
      return xml
        .replace(`volume='${own}'`, `volume='${disk}'`)
        .replace(`volume='${seedOf(name)}'`, `volume='${seed}'`)
        .replace('  </devices>', `${lastDisk(pool, own)}  </devices>`);
    },
  });
}

/** See `HypervisorDriver.endRescue`. */
export function endRescue(call: Virsh, pool: string, name: string, change: number): Promise<void> {
  return swapDisks(call, pool, name, change, { prepare: async () => {}, edit: (xml) => xml });
}

/** See `HypervisorDriver.readRescue`, of a guest that is there. */
export async function readRescue(call: Virsh, name: string): Promise<boolean> {
  return rescueDisk.test(await readDefinition(call, name));
}

/** Changes the definition of a guest on its own disk, with the guest off, unless that is done already. */
async function swapDisks(
  call: Virsh,
  pool: string,
  name: string,
  change: number,
  { prepare, edit }: { prepare: () => Promise<void>; edit: (xml: string) => string },
): Promise<void> {
  let xml = await readDefinition(call, name);
  const present = notedChange(xml, 'rescue');
  if (present > change) throw changedSince(name);
  if (present < change) {
    await prepare();
    await tolerate(call(['destroy', checked('name', name)]), /not running/i);
    if (!(await isOff(call, name))) throw failed(`The guest ${name} still runs.`);
    // Read again: a worker that slept meanwhile must not undo what a later one did.
    const latest = await readDefinition(call, name);
    if (notedChange(latest, 'rescue') !== present) throw changedSince(name);
    await redefine(call, noteChange(edit(withoutRescue(latest, pool, name)), 'rescue', change));
    xml = await readDefinition(call, name);
    // Volumes are deleted next, so a node that said it was done has to be.
    if (notedChange(xml, 'rescue') !== change) throw failed(`The guest ${name} still has its former disks.`);
  }
  for (const volume of await volumesOf(call, pool, name))
    if (volume.startsWith(`${name}-rescue-`) && !xml.includes(`volume='${volume}'`))
      await deleteVolume(call, pool, volume);
}

const rescueDisk = /volume='(vm-\d+-rescue-\d+)\.qcow2'/;

/** The definition with the guest's own disk and seed in their places. */
function withoutRescue(xml: string, pool: string, name: string): string {
  const rescue = rescueDisk.exec(xml)?.[1];
  if (rescue === undefined) return xml;
  const own = diskOf(xml, pool);
  return xml
    .replace(new RegExp(`\\s*<disk (?:(?!</disk>)[^])*volume='${own.replace('.', '\\.')}'[^]*?</disk>`), '')
    .replace(`volume='${rescue}.qcow2'`, `volume='${own}'`)
    .replace(`volume='${rescue}-seed.iso'`, `volume='${seedOf(name)}'`);
}

/** Under a name that no other disk has: guests number their disks in the order of their slots. */
const lastDisk = (pool: string, own: string) => `    <disk type='volume' device='disk'>
      <driver name='qemu' type='qcow2' discard='unmap'/>
      <source pool='${pool}' volume='${own}'/>
      <target dev='vdz' bus='virtio'/>
    </disk>
`;

const changedSince = (name: string) =>
  new CodedError('hypervisor.refused', `The disks of the guest ${name} were changed since.`);
const failed = (message: string) => new CodedError('hypervisor.failed', message);
