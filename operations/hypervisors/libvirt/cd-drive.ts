/**
 * The CD drive of a libvirt guest, empty or with an ISO of the pool: a guest starts from it before its disk. A guest that was made before
 * there were drives gets one with its next start. A note in its metadata has the number of the last change.
 */
import { CodedError } from '#common/errors/index.ts';
import { isOff, noteChange, notedChange, readDefinition, redefine } from './change-guest.ts';
import { cdDrive } from './domain-xml.ts';
import { readXml, type Virsh, withFile } from './run-virsh.ts';
import { capacityOf } from './volumes.ts';

/** See `HypervisorDriver.changeIso`. */
export async function changeIso(
  call: Virsh,
  pool: string,
  name: string,
  iso: string | null,
  change: number,
): Promise<'now' | 'next_boot'> {
  const xml = await readDefinition(call, name);
  const present = notedChange(xml, 'iso');
  if (present > change)
    throw new CodedError('hypervisor.refused', `The CD drive of ${name} was changed since.`);
  if (present < change) {
    await call(['pool-refresh', pool]);
    if (iso !== null) await capacityOf(call, pool, `${iso}.iso`);
    await redefine(call, noteChange(withIso(xml, pool, iso), 'iso', change));
    if (notedChange(await readDefinition(call, name), 'iso') !== change)
      throw new CodedError('hypervisor.failed', `The CD drive of ${name} is as before.`);
  }
  if (await isOff(call, name)) return 'now';
  const live = await readXml(call, name);
  if (!drive.test(live)) return iso === null ? 'now' : 'next_boot';
  if (isoOf(live) === iso) return 'now';
  // By force: an operating system may have locked the tray.
  await withFile('drive.xml', cdDrive(targetOf(live), pool, iso), (file) =>
    call(['update-device', name, file, '--live', '--force']),
  );
  if (isoOf(await readXml(call, name)) !== iso)
    throw new CodedError('hypervisor.failed', `The CD drive of ${name} still holds what it held.`);
  return 'now';
}

/** See `HypervisorDriver.readIso`, of a guest that is there. */
export const readIso = async (call: Virsh, name: string) => isoOf(await readDefinition(call, name));

/** The drive that is not of a seed, as guests had one once. */
const drive = /[ \t]*<disk type='\w+' device='cdrom'>(?:(?!<\/disk>|-seed\.iso)[\s\S])*<\/disk>\n?/;

const isoOf = (xml: string) => /volume='([^']+)\.iso'/.exec(drive.exec(xml)?.[0] ?? '')?.[1] ?? null;

/** A seed may have the first name. */
const targetOf = (xml: string) =>
  /<target dev='(\w+)'/.exec(drive.exec(xml)?.[0] ?? '')?.[1] ??
  (xml.includes("<target dev='sda'") ? 'sdb' : 'sda');

function withIso(xml: string, pool: string, iso: string | null): string {
  const next = cdDrive(targetOf(xml), pool, iso);
  return xml
    .replace(drive, '')
    .replace('  </devices>', `${next}  </devices>`)
    .replace(/(?<!<boot dev='cdrom'\/>\s*)<boot dev='hd'\/>/, "<boot dev='cdrom'/><boot dev='hd'/>");
}
