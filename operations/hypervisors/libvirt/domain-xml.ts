/**
 * The definition of a libvirt domain.
 *
 * Everything that goes into it is checked against a narrow pattern first and escaped as well, so nothing that a customer
 * chose can add an element: the host name and the user data travel in the seed image, not in here. The seed is a virtio disk: the kernel
 * of Debian's cloud images has no driver for SATA. It boots from its CD drive and its disk alone: what firmware sends to boot from a network would pass for a
 * guest that is addressable.
 */
import { createHash } from 'node:crypto';
import { CodedError } from '#common/errors/index.ts';

export interface DomainPlan {
  name: string;
  /** null: no NIC on the bridge. */
  mac: string | null;
  vcpus: number;
  memoryMb: number;
  /** Volumes of the pool. */
  storagePool: string;
  disk: string;
  seed: string;
  bridge: string;
  /** Hardware virtualisation where the node has it, QEMU in software where not. */
  type: 'kvm' | 'qemu';
}

/** The device that a guest starts from. */
export const firstDisk = 'vda';

const patterns = {
  name: /^vm-[1-9]\d{0,15}$/,
  mac: /^([0-9a-f]{2}:){5}[0-9a-f]{2}$/,
  storagePool: /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/,
  disk: /^vm-[1-9]\d{0,15}(-r(escue-)?[1-9]\d{0,15})?\.qcow2$/,
  snapshot: /^vm-[1-9]\d{0,15}-s[1-9]\d{0,15}\.qcow2$/,
  seed: /^vm-[1-9]\d{0,15}(-rescue-[1-9]\d{0,15})?-seed\.iso$/,
  bridge: /^[A-Za-z0-9][A-Za-z0-9._-]{0,14}$/,
  image: /^[a-z0-9][a-z0-9.-]{0,68}$/,
};

/** The text itself when it is a fitting one; throws `hypervisor.refused` otherwise. */
export function checked(kind: keyof typeof patterns, text: string | null): string {
  if (text !== null && patterns[kind].test(text)) return text;
  throw new CodedError(
    'hypervisor.refused',
    `${JSON.stringify(text)} can not serve as the ${kind} of a libvirt guest.`,
  );
}

/** The guest's NIC at the node. Made from the guest's name, so that its counters can be told apart. */
export function deviceOf(name: string): string {
  // A device has at most 15 characters; ids of more than eleven digits are cut to their unlike end.
  return `svc${checked('name', name).slice(3).slice(-11)}`;
}

/** The number as text; throws `hypervisor.refused` for what can't be a size. */
export function wholeSize(value: number, max: number): string {
  if (Number.isInteger(value) && value > 0 && value <= max) return String(value);
  throw new CodedError('hypervisor.refused', `${value} is no size of a guest.`);
}

/** The filter that a guest's NIC is bound to; `networkId` null: the public one. */
export function filterName(guest: string, networkId: number | null): string {
  return `svc-${checked('name', guest)}${networkId === null ? '' : `-pn-${networkId}`}`;
}

/** libvirt replaces a filter or a network only under its own UUID. */
export function uuidOf(name: string): string {
  const hex = createHash('sha256').update(name).digest('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

export function domainXml(plan: DomainPlan): string {
  const pool = escapeXml(checked('storagePool', plan.storagePool));
  return `<domain type='${plan.type}'>
  <name>${escapeXml(checked('name', plan.name))}</name>
  <memory unit='MiB'>${wholeSize(plan.memoryMb, 16_777_216)}</memory>
  <vcpu>${wholeSize(plan.vcpus, 1_024)}</vcpu>
  <os><type arch='x86_64'>hvm</type><boot dev='cdrom'/><boot dev='hd'/></os>
  <features><acpi/><apic/></features>
${plan.type === 'kvm' ? "  <cpu mode='host-model'/>\n" : ''}  <clock offset='utc'/>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>restart</on_reboot>
  <on_crash>restart</on_crash>
  <devices>
    <disk type='volume' device='disk'>
      <driver name='qemu' type='qcow2' discard='unmap'/>
      <source pool='${pool}' volume='${escapeXml(checked('disk', plan.disk))}'/>
      <target dev='${firstDisk}' bus='virtio'/>
    </disk>
    <disk type='volume' device='disk'>
      <driver name='qemu' type='raw'/>
      <source pool='${pool}' volume='${escapeXml(checked('seed', plan.seed))}'/>
      <target dev='vdb' bus='virtio'/>
      <readonly/>
    </disk>
${cdDrive('sda', plan.storagePool, null)}${plan.mac === null ? '' : publicNic(plan, plan.mac)}    <channel type='unix'><target type='virtio' name='org.qemu.guest_agent.0'/></channel>
    <console type='pty'/>
    <graphics type='vnc'><listen type='socket'/></graphics>
    <video><model type='vga'/></video>
    <input type='tablet' bus='usb'/>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
  </devices>
</domain>
`;
}

/** Empty, or with an ISO of the pool. */
export const cdDrive = (target: string, pool: string, iso: string | null) =>
  `    <disk type='${iso === null ? 'file' : 'volume'}' device='cdrom'>
      <driver name='qemu' type='raw'/>
${iso === null ? '' : `      <source pool='${escapeXml(checked('storagePool', pool))}' volume='${checked('image', iso)}.iso'/>\n`}      <target dev='${target}' bus='sata'/>
      <readonly/>
    </disk>
`;

function publicNic(plan: DomainPlan, mac: string): string {
  return `    <interface type='bridge'>
      <mac address='${escapeXml(checked('mac', mac))}'/>
      <source bridge='${escapeXml(checked('bridge', plan.bridge))}'/>
      <target dev='${deviceOf(plan.name)}'/>
      <model type='virtio'/>
      <filterref filter='${filterName(plan.name, null)}'/>
    </interface>
`;
}

function escapeXml(text: string): string {
  return text.replaceAll(/[<>&'"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
