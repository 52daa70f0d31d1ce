/**
 * Snapshots of a libvirt guest: full copies of its disk in the pool, `vm-<id>-s<snapshot>.qcow2`.
 *
 * A backup job of QEMU makes them: it copies the disk as it was when the job began, while the guest goes on.
 * A guest that is off is started for it without running. A restored disk is a copy-on-write one over the snapshot, as a new one is over
 * its image: it is there at once or not at all, and the snapshot stays as long as the disk needs it. The disk of a guest that is made from
 * the snapshot of another begins in the same way; while the guest boots, QEMU copies into it what it needs of the snapshot.
 */
import { CodedError } from '#common/errors/index.ts';
import type { GuestDefinition, SnapshotProgress } from '../guest.ts';
import { diskOf, readDefinition, replaceDisk } from './change-guest.ts';
import { firstDisk } from './domain-xml.ts';
import { complaintOf, tolerate, type Virsh, withFile } from './run-virsh.ts';
import { capacityOf, deleteVolume, listVolumes, snapshotOf } from './volumes.ts';

const noJob = /no domain backup job|domain is not running|failed to get domain/i;

/** See `HypervisorDriver.createSnapshot`. */
export async function copyDisk(
  call: Virsh,
  pool: string,
  name: string,
  snapshot: number,
): Promise<SnapshotProgress> {
  const volume = snapshotOf(name, snapshot);
  const xml = await readDefinition(call, name);
  const disk = diskOf(xml, pool);
  const present = await readBackup(call, name);
  if (present !== null && !present.includes(`/${volume}'`))
    throw new CodedError('hypervisor.failed', `Another backup of the guest ${name} is running.`);
  if (present !== null) return { progress: progressOf(await call(['domjobinfo', name, '--rawstats'])) };
  await call(['pool-refresh', pool]);
  if (!(await listVolumes(call, pool)).includes(volume)) {
    const path = (await call(['vol-path', '--pool', pool, disk])).trim();
    await tolerate(call(['start', name, '--paused']), /already active|already running/i);
    await beginBackup(call, name, xml.split(`volume='${disk}'`)[1]!, path.replace(/[^/]+$/, volume));
    // Until the next refresh the pool does not know the file.
    await call(['pool-refresh', pool]);
    return { progress: 0 };
  }
  const last = await ended(call(['domjobinfo', name, '--completed', '--keep-completed']));
  if (!/^Job type:\s+Completed/m.test(last ?? ''))
    throw new CodedError('hypervisor.refused', `The copy of the disk of ${name} broke off.`);
  const info = await call(['vol-info', '--pool', pool, volume, '--bytes']);
  return { bytes: Number(/^Allocation:\s+(\d+)/m.exec(info)?.[1]) };
}

/** Copies the disk whose definition goes on with `rest` to a file beside it. */
async function beginBackup(call: Virsh, name: string, rest: string, target: string): Promise<void> {
  const device = /<target dev='(\w+)'/.exec(rest)?.[1];
  // Of libvirt's own words, already escaped; what is no plain path is left alone.
  if (device === undefined || !/^\/[\w./ -]{1,500}$/.test(target))
    throw new CodedError('hypervisor.refused', `The disk of ${name} can’t be copied to ${target}.`);
  const xml = `<domainbackup mode='push'>
  <disks>
    <disk name='${device}' type='file'><driver type='qcow2'/><target file='${target}'/></disk>
  </disks>
</domainbackup>
`;
  await withFile('backup.xml', xml, (file) => call(['backup-begin', name, file]));
}

/** The backup job of the guest; null when there is none. */
const readBackup = (call: Virsh, name: string) => ended(call(['backup-dumpxml', name]));

/** What a command says of a job; null where there is none. */
async function ended(work: Promise<string>): Promise<string | null> {
  try {
    return await work;
  } catch (error) {
    if (noJob.test(complaintOf(error))) return null;
    throw error;
  }
}

function progressOf(stats: string): number {
  const [total, processed] = ['disk_total', 'disk_processed'].map((key) =>
    Number(new RegExp(`${key}:?\\s+(\\d+)`).exec(stats)?.[1] ?? 0),
  );
  return total! > 0 ? Math.min(99, Math.floor((100 * processed!) / total!)) : 0;
}

/** See `HypervisorDriver.restoreSnapshot`. */
export async function restoreDisk(
  call: Virsh,
  pool: string,
  name: string,
  snapshot: number,
  rebuild: number,
): Promise<void> {
  const volume = snapshotOf(name, snapshot);
  await replaceDisk(call, pool, name, rebuild, async (disk, present) => {
    const bytes = await Promise.all([volume, present].map((one) => capacityOf(call, pool, one)));
    const backing = ['--backing-vol', volume, '--backing-vol-format', 'qcow2'];
    const create = ['vol-create-as', pool, disk, String(Math.max(...bytes)), '--format', 'qcow2', ...backing];
    await tolerate(call(create), /exists already/i);
  });
}

/** See `HypervisorDriver.deleteSnapshot`. */
export async function deleteSnapshot(
  call: Virsh,
  pool: string,
  name: string,
  snapshot: number,
): Promise<boolean> {
  const volume = snapshotOf(name, snapshot);
  if ((await readBackup(call, name))?.includes(`/${volume}'`)) await call(['domjobabort', name]);
  if (await isBacking(call, pool, name, volume)) return false;
  await call(['pool-refresh', pool]);
  await deleteVolume(call, pool, volume);
  return true;
}

/** Whether the disk of the guest, where there is one, is a copy-on-write one over the volume. */
async function isBacking(call: Virsh, pool: string, name: string, volume: string): Promise<boolean> {
  if (!(await call(['list', '--all', '--name'])).split(/\s+/).includes(name)) return false;
  const disk = diskOf(await readDefinition(call, name), pool);
  return (await call(['vol-dumpxml', '--pool', pool, disk])).includes(`/${volume}</path>`);
}

/** Copies what the disk of a guest that runs needs of the snapshot that it was made from; true when that is complete. */
export async function pullSource(
  call: Virsh,
  pool: string,
  name: string,
  { guest, snapshot }: NonNullable<GuestDefinition['source']>,
): Promise<boolean> {
  // What a job has changed in the header of a volume is known from the next refresh on.
  await call(['pool-refresh', pool]);
  if (!(await isBacking(call, pool, name, snapshotOf(guest, snapshot)))) return true;
  await tolerate(call(['blockpull', name, firstDisk]), /already in active block job/i);
  return false;
}
