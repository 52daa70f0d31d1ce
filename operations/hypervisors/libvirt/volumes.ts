/** Volumes of a libvirt guest in the storage pool of its node. */
import { stat } from 'node:fs/promises';
import { CodedError } from '#common/errors/index.ts';
import type { GuestDefinition } from '../guest.ts';
import { hashPassword, type SeedPassword, seedFiles, withSeedImage } from './cloud-seed.ts';
import { checked } from './domain-xml.ts';
import { complaintOf, tolerate, type Virsh } from './run-virsh.ts';

export const snapshotOf = (name: string, snapshot: number) =>
  checked('snapshot', `${name}-s${snapshot}.qcow2`);
export const seedOf = (name: string) => checked('seed', `${name}-seed.iso`);

/** Disk and seed. A disk that stands from an earlier attempt is taken as it is; the seed is always written anew. */
export async function makeVolumes(
  call: Virsh,
  pool: string,
  guest: GuestDefinition,
  disk: string,
  seed = seedOf(guest.name),
): Promise<void> {
  const { source } = guest;
  const image = source
    ? snapshotOf(source.guest, source.snapshot)
    : `${checked('image', guest.imageSlug)}.qcow2`;
  const size = `${Math.trunc(guest.diskGb)}G`;
  const backing = ['--backing-vol', image, '--backing-vol-format', 'qcow2'];
  try {
    await tolerate(
      call(['vol-create-as', pool, disk, size, '--format', 'qcow2', ...backing]),
      /exists already/i,
    );
  } catch (error) {
    if (!complaintOf(error).includes(`failed to get vol '${image}'`)) throw error;
    throw new CodedError(
      'hypervisor.refused',
      `The storage pool ${pool} has no ${source ? 'snapshot' : 'image'} ${image}.`,
    );
  }
  await writeSeed(call, pool, guest, { hash: await hashPassword(guest.rootPassword), change: null }, seed);
}

/** Writes the seed anew, also of a guest that runs, which reads it at its next boot. */
export async function writeSeed(
  call: Virsh,
  pool: string,
  guest: GuestDefinition,
  password: SeedPassword | null,
  seed = seedOf(guest.name),
): Promise<void> {
  await withSeedImage(seedFiles(guest, password), async (path) => {
    const { size } = await stat(path);
    await tolerate(call(['vol-create-as', pool, seed, String(size), '--format', 'raw']), /exists already/i);
    await call(['vol-upload', '--pool', pool, seed, path]);
  });
}

/** The disks of the guest, their snapshots, and the seeds. */
export async function volumesOf(call: Virsh, pool: string, name: string): Promise<string[]> {
  const own = new RegExp(
    `^${checked('name', name)}((-(r|s|rescue-)\\d+)?\\.qcow2|(-rescue-\\d+)?-seed\\.iso)$`,
  );
  return (await listVolumes(call, pool)).filter((volume) => own.test(volume));
}

export async function listVolumes(call: Virsh, pool: string): Promise<string[]> {
  const lines = (await call(['vol-list', '--pool', pool])).split('\n');
  return lines.map((line) => line.trim().split(/\s+/)[0]!);
}

/** Resolves when the pool has no such volume. A node that said it was done may not be: nothing would delete it later. */
export async function deleteVolume(call: Virsh, pool: string, volume: string): Promise<void> {
  await tolerate(call(['vol-delete', '--pool', pool, volume]), /Storage volume not found/i);
  if ((await listVolumes(call, pool)).includes(volume))
    throw new CodedError('hypervisor.failed', `The volume ${volume} is still there.`);
}

export async function capacityOf(call: Virsh, pool: string, volume: string): Promise<number> {
  try {
    const info = await call(['vol-info', '--pool', pool, volume, '--bytes']);
    return Number(/^Capacity:\s+(\d+)/m.exec(info)?.[1]);
  } catch (error) {
    if (!/failed to get vol|Storage volume not found/i.test(complaintOf(error))) throw error;
    throw new CodedError('hypervisor.refused', `The storage pool ${pool} has no volume ${volume}.`);
  }
}
