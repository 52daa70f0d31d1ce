/**
 * Changes of a libvirt guest that keep its identity: another disk, other sizes, another root password.
 *
 * The definition is changed in place, so that NICs, filters and the additions of an operator stay. A rebuilt guest's disk is
 * the volume `vm-<id>-r<rebuild>.qcow2`: its name says which rebuild made it, so no rebuild is made twice.
 */
import { CodedError } from '#common/errors/index.ts';
import { type FoundGuest, type GuestDefinition, type GuestSize, serverIdOfGuest } from '../guest.ts';
import { hashPassword } from './cloud-seed.ts';
import { checked, deviceOf, wholeSize } from './domain-xml.ts';
import { complaintOf, readXml, tolerate, type Virsh, withFile } from './run-virsh.ts';
import { capacityOf, deleteVolume, volumesOf, writeSeed } from './volumes.ts';

const gib = 1024 ** 3;

/**
 * See `HypervisorDriver.rebuildGuest`; the guest is off afterwards, or runs where its disk is of this rebuild already. `make` makes the
 * volume of the new disk.
 */
export async function replaceDisk(
  call: Virsh,
  pool: string,
  name: string,
  rebuild: number,
  make: (disk: string, present: string) => Promise<void>,
): Promise<void> {
  const xml = await readDefinition(call, name);
  const disk = checked('disk', `${name}-r${rebuild}.qcow2`);
  const present = diskOf(xml, pool);
  const presentRebuild = rebuildOf(present);
  if (presentRebuild > rebuild) throw refused(`The guest ${name} was rebuilt since.`);
  if (presentRebuild < rebuild) {
    try {
      await make(disk, present);
    } catch (error) {
      await deleteVolume(call, pool, disk).catch(() => {});
      throw error;
    }
    await capacityOf(call, pool, disk);
    await tolerate(call(['destroy', checked('name', name)]), /not running/i);
    if (!(await isOff(call, name))) throw failed(`The guest ${name} still runs.`);
    // Read again: a worker that slept while another rebuilt the guest must not give it an older disk.
    const latest = await readDefinition(call, name);
    if (diskOf(latest, pool) !== present) throw refused(`The guest ${name} was rebuilt since.`);
    await redefine(call, latest.replace(`volume='${present}'`, `volume='${disk}'`));
    // The old disk goes next, so a node that said it was done has to be.
    if (diskOf(await readDefinition(call, name), pool) !== disk)
      throw failed(`The guest ${name} still has its old disk.`);
  }
  // Also what an attempt that died here left behind.
  for (const volume of await volumesOf(call, pool, name))
    if (volume !== disk && /^vm-\d+(-r\d+)?\.qcow2$/.test(volume)) await deleteVolume(call, pool, volume);
}

const rebuildOf = (disk: string) => Number(/-r(\d+)\.qcow2$/.exec(disk)?.[1] ?? 0);

/** The rebuild that made the disk of a guest which is there. */
export async function readRebuild(call: Virsh, pool: string, name: string): Promise<number> {
  return rebuildOf(diskOf(await readDefinition(call, name), pool));
}

/** See `HypervisorDriver.resizeGuest`. */
export async function changeSize(call: Virsh, pool: string, name: string, size: GuestSize): Promise<void> {
  const disk = diskOf(await readDefinition(call, name), pool);
  if (!(await isOff(call, name))) throw refused(`The guest ${name} is on.`);
  const bytes = await capacityOf(call, pool, disk);
  const wanted = Number(wholeSize(size.diskGb, 1_048_576)) * gib;
  if (!(bytes <= wanted)) throw refused(`The guest ${name} has a larger disk.`);
  if (bytes < wanted) await call(['vol-resize', '--pool', pool, disk, String(wanted)]);
  if ((await capacityOf(call, pool, disk)) < wanted) throw failed(`The disk of ${name} is still smaller.`);
  // Read again: a worker that slept while another rebuilt the guest must not give it an older disk.
  const xml = await readDefinition(call, name);
  if (diskOf(xml, pool) !== disk) throw refused(`The guest ${name} was rebuilt since.`);
  const resized = xml
    .replace(
      /<memory [^>]*>\d+<\/memory>/,
      `<memory unit='MiB'>${wholeSize(size.memoryMb, 16_777_216)}</memory>`,
    )
    .replace(/\s*<currentMemory [^>]*>\d+<\/currentMemory>/, '')
    .replace(/<vcpu[^>]*>\d+<\/vcpu>/, `<vcpu>${wholeSize(size.vcpus, 1_024)}</vcpu>`);
  await redefine(call, resized);
  const { vcpus, memoryMb } = sizesOf(await readDefinition(call, name));
  if (vcpus !== size.vcpus || memoryMb !== size.memoryMb)
    throw failed(`The guest ${name} still has other sizes.`);
}

export const isOff = async (call: Virsh, name: string) =>
  (await call(['domstate', name])).trim() === 'shut off';

/** See `HypervisorDriver.setRootPassword`. A list of processes shows the salted hash, not the password. */
export async function changeRootPassword(
  call: Virsh,
  pool: string,
  guest: GuestDefinition,
  change: number,
): Promise<'now' | 'next_boot'> {
  const hash = await hashPassword(guest.rootPassword);
  try {
    await call(['set-user-password', checked('name', guest.name), 'root', hash, '--encrypted']);
    return 'now';
  } catch (error) {
    if (!/guest agent|domain is not running/i.test(complaintOf(error))) throw error;
    await writeSeed(call, pool, guest, { hash, change });
    return 'next_boot';
  }
}

/** See `HypervisorDriver.limitSpeed`. */
export async function limitSpeed(call: Virsh, name: string, mbit: number | null): Promise<void> {
  // In kilobytes a second; 0 takes a limit away.
  const speed = mbit === null ? '0' : wholeSize(mbit * 125, 125_000_000);
  const tune = ['domiftune', checked('name', name), deviceOf(name), '--inbound', speed, '--outbound', speed];
  await call([...tune, '--config']);
  await tolerate(call([...tune, '--live']), /not running/i);
}

/** Defines a domain anew, or the first time. */
export async function redefine(call: Virsh, xml: string): Promise<void> {
  await withFile('domain.xml', xml, (file) => call(['define', file, '--validate']));
}

type Noted = 'rescue' | 'iso';
const noteOf = (of: Noted) => new RegExp(`\\s*<svc:${of} [^>]*>(\\d+)</svc:${of}>`);

/** The number of the last change of this kind that the metadata of a guest have; 0 for none. */
export const notedChange = (xml: string, of: Noted) => Number(noteOf(of).exec(xml)?.[1] ?? 0);

export function noteChange(xml: string, of: Noted, change: number): string {
  const text = `<svc:${of} xmlns:svc='https://svc/${of}'>${change}</svc:${of}>`;
  const rest = xml.replace(noteOf(of), '');
  return rest.includes('<metadata>')
    ? rest.replace('<metadata>', `<metadata>${text}`)
    : rest.replace('</name>', `</name>\n  <metadata>${text}</metadata>`);
}

export const readDefinition = (call: Virsh, name: string) =>
  readXml(call, name, '--inactive', '--security-info');

/** See `HypervisorDriver.inspectGuests`. */
export async function inspectGuests(call: Virsh): Promise<FoundGuest[]> {
  const names = (await call(['list', '--all', '--name'])).split(/\s+/);
  const found: FoundGuest[] = [];
  for (const name of names.filter((one) => serverIdOfGuest(one) !== null)) {
    const xml = await readDefinition(call, name);
    const macs = [...xml.matchAll(/<mac address='([^']+)'/g)].map((match) => match[1]!).sort();
    found.push({ name, ...sizesOf(xml), macs });
  }
  return found;
}

const sizesOf = (xml: string) => ({
  vcpus: Number(/<vcpu[^>]*>(\d+)</.exec(xml)?.[1]),
  memoryMb: Number(/<memory unit='KiB'>(\d+)</.exec(xml)?.[1]) / 1024,
});

/** The guest's own disk, a volume of the pool. */
export function diskOf(xml: string, pool: string): string {
  const sources = [...xml.matchAll(/<source pool='([^']*)' volume='(vm-\d+(?:-r\d+)?\.qcow2)'/g)];
  const found = sources.find(([, inPool]) => inPool === pool)?.[2];
  if (found === undefined) throw refused(`The guest has no disk in the pool ${pool}.`);
  return found;
}

const refused = (message: string) => new CodedError('hypervisor.refused', message);
const failed = (message: string) => new CodedError('hypervisor.failed', message);
