/** The two volumes of a libvirt guest. */
import { stat } from 'node:fs/promises';
import { CodedError } from '#common/errors/index.ts';
import type { GuestDefinition } from '../guest.ts';
import { hashPassword, type SeedPassword, seedFiles, withSeedImage } from './cloud-seed.ts';
import { checked } from './domain-xml.ts';
import { complaintOf, tolerate, type Virsh } from './run-virsh.ts';

export const seedOf = (name: string) => checked('seed', `${name}-seed.iso`);

/** Disk and seed. A disk that stands from an earlier attempt is taken as it is; the seed is always written anew. */
export async function makeVolumes(
  call: Virsh,
  pool: string,
  guest: GuestDefinition,
  disk: string,
): Promise<void> {
  const image = `${checked('image', guest.imageSlug)}.qcow2`;
  const size = `${Math.trunc(guest.diskGb)}G`;
  const backing = ['--backing-vol', image, '--backing-vol-format', 'qcow2'];
  try {
    await tolerate(
      call(['vol-create-as', pool, disk, size, '--format', 'qcow2', ...backing]),
      /exists already/i,
    );
  } catch (error) {
    if (!complaintOf(error).includes(`failed to get vol '${image}'`)) throw error;
    throw new CodedError('hypervisor.refused', `The storage pool ${pool} has no image ${image}.`);
  }
  await writeSeed(call, pool, guest, { hash: await hashPassword(guest.rootPassword), change: null });
}

/** Writes the seed anew, also of a guest that runs, which reads it at its next boot. */
export async function writeSeed(
  call: Virsh,
  pool: string,
  guest: GuestDefinition,
  password: SeedPassword | null,
): Promise<void> {
  await withSeedImage(seedFiles(guest, password), async (path) => {
    const { size } = await stat(path);
    const seed = seedOf(guest.name);
    await tolerate(call(['vol-create-as', pool, seed, String(size), '--format', 'raw']), /exists already/i);
    await call(['vol-upload', '--pool', pool, seed, path]);
  });
}
