/**
 * Checks what a libvirt node needs to run servers: all of it at once, each with a sentence of what is missing.
 *
 * Bridge, filters and limits are tried on a domain of no disk that is started paused and ended at once: what libvirt only says of a
 * start is known before a customer orders one.
 */
import { randomBytes } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import {
  bridgeOf,
  type HypervisorNode,
  type NodeCheck,
  nodeSubjects,
  parseNetworkBridges,
} from '../guest.ts';
import { defineGuard } from './filters.ts';
import { checkGuardHook } from './guard-table.ts';
import { complaintOf, run, type Virsh, withFile } from './run-virsh.ts';
import { listVolumes } from './volumes.ts';

const gib = 1024 ** 3;
const checkFilter = 'svc-check';
const trialPattern = /^svc-check-[0-9a-f]{6}$/;

interface Site extends Pick<HypervisorNode, 'networkBridges'> {
  call: Virsh;
  pool: string;
  bridge: string;
  /** Of the images on offer. */
  files: readonly string[];
}

type Subject = NodeCheck['subject'];
type Result = Pick<NodeCheck, 'state' | 'text'>;
const good = (text: string): Result => ({ state: 'good', text });
const warning = (text: string): Result => ({ state: 'warning', text });
const bad = (text: string): Result => ({ state: 'bad', text });

const wordsOf = (error: unknown) => complaintOf(error).replace(/^error: /, '') || describeError(error);
const hasHung = (error: unknown) => /no answer within/.test(wordsOf(error));

/** See `HypervisorDriver.checkNode`. */
export async function checkNode(site: Site): Promise<NodeCheck[]> {
  const found = new Map<Subject, Result>();
  let hung: string | null = null;
  for (const subject of nodeSubjects) {
    const needed = needs[subject];
    const isKept = needed.some((one) => !['good', 'warning'].includes(found.get(one)?.state ?? 'good'));
    if (hung !== null || isKept) {
      const text = hung === null ? `Not checked: ${needed.join(' and ')} first.` : `Not checked: ${hung}`;
      found.set(subject, { state: 'unknown', text });
      continue;
    }
    try {
      found.set(subject, await checks[subject](site));
    } catch (error) {
      found.set(subject, bad(wordsOf(error)));
      // What is asked next would hang as long.
      if (hasHung(error)) hung = 'virsh does not answer.';
    }
  }
  if (hung === null && found.get('connection')?.state !== 'bad') await endTrials(site.call).catch(() => {});
  return nodeSubjects.map((subject) => ({ subject, ...found.get(subject)! }));
}

const needs: Record<Subject, readonly Subject[]> = {
  connection: [],
  programs: [],
  virtualization: ['connection'],
  'storage pool': ['connection'],
  images: ['connection', 'storage pool'],
  bridge: ['connection'],
  'private networks': ['connection', 'bridge'],
  'network filters': ['connection', 'bridge'],
  'speed limits': ['connection', 'bridge'],
  'guest agents': ['connection'],
};

const checks: Record<Subject, (site: Site) => Promise<Result>> = {
  async connection({ call }) {
    const text = await call(['version', '--daemon']);
    const version = /Running against daemon: (\d+)(\.[\d.]+)/.exec(text);
    const emulator = /Running hypervisor: (.+)/.exec(text)?.[1];
    const words = `libvirt ${version?.[1]}${version?.[2]}, ${emulator}`;
    return Number(version?.[1]) < 7 ? bad(`${words}: libvirt 7 is needed.`) : good(`${words}.`);
  },
  async programs() {
    const lacking: string[] = [];
    for (const [program, option] of [
      ['genisoimage', '--version'],
      ['openssl', 'version'],
    ] as const)
      await run(program, [option]).catch(() => lacking.push(program));
    return lacking.length === 0
      ? good('The host of operations has genisoimage and openssl.')
      : bad(`The host of operations lacks ${lacking.join(' and ')}.`);
  },
  async virtualization({ call }) {
    return (await hasHardware(call))
      ? good('Servers run on the hardware (KVM).')
      : warning('The node has no KVM: servers run in software, many times slower.');
  },
  async 'storage pool'({ call, pool }) {
    let info: string;
    try {
      info = await call(['pool-info', pool, '--bytes']);
    } catch (error) {
      if (!/failed to get pool|Storage pool not found/i.test(complaintOf(error))) throw error;
      return bad(`There is no storage pool ${pool}.`);
    }
    const value = (key: string) => new RegExp(`^${key}:\\s+(\\S+)`, 'm').exec(info)?.[1];
    if (value('State') !== 'running') return bad(`The storage pool is not active: virsh pool-start ${pool}.`);
    const type = /<pool type='([^']+)'/.exec(await call(['pool-dumpxml', pool]))?.[1] ?? 'unknown';
    if (!['dir', 'fs', 'netfs'].includes(type))
      return bad(`The storage pool is of the type ${type}. Disks are files: it must be dir, fs or netfs.`);
    const [capacity, available] = ['Capacity', 'Available'].map((key) => Number(value(key)));
    const room = `${(available! / gib).toFixed(1)} of ${(capacity! / gib).toFixed(1)} GiB are free`;
    if (available! < gib) return bad(`The storage pool is full: ${room}.`);
    if (available! < capacity! / 10) return warning(`The storage pool is nearly full: ${room}.`);
    return value('Autostart') === 'yes'
      ? good(`${room}.`)
      : warning(`${room}. The pool does not start with the node: virsh pool-autostart ${pool}.`);
  },
  async images({ call, pool, files }) {
    await call(['pool-refresh', pool]);
    const volumes = await listVolumes(call, pool);
    const lacking = files.filter((file) => !volumes.includes(file));
    if (lacking.length > 0)
      return bad(`The storage pool lacks ${lacking.join(', ')} (./svc operations fetch-image).`);
    for (const file of files.filter((one) => one.endsWith('.qcow2')))
      if (!(await call(['vol-dumpxml', '--pool', pool, file])).includes("<format type='qcow2'/>"))
        return bad(`${file} is not of the format qcow2.`);
    return good(files.length === 0 ? 'No image is on offer.' : `The storage pool has ${files.join(', ')}.`);
  },
  bridge: ({ call, bridge }) => checkBridges(call, [bridge]),
  async 'private networks'({ call, networkBridges }) {
    if (networkBridges === null) return good('The private networks of a server end at this node.');
    const { first, last } = parseNetworkBridges(networkBridges)!;
    // Those between them are made in the same way, and a trial of each would take minutes.
    return checkBridges(
      call,
      [...new Set([first, last])].map((segment) => bridgeOf({ networkBridges }, segment)!),
    );
  },
  async 'network filters'({ call, bridge }) {
    const nic = { mac: '52:54:00:00:00:00', addresses: ['192.0.2.1'] };
    await defineGuard(call, checkFilter, nic);
    const reference = `<filterref filter='${checkFilter}-guard'/>`;
    try {
      await withTrial({ call, bridge }, reference, async () => {});
    } finally {
      await call(['nwfilter-undefine', `${checkFilter}-guard`]);
    }
    return (await checkGuardHook(call))
      ? good('Guards and firewalls can be applied.')
      : warning(
          'Guards and firewalls can be applied. Without the hook svc-guard a server can answer for the IPv6 address of another one.',
        );
  },
  async 'speed limits'({ call, bridge }) {
    try {
      await withTrial({ call, bridge }, '', async (name) => {
        const limits = ['--inbound', '1000', '--outbound', '1000', '--live'];
        await call(['domiftune', name, deviceOfTrial(name), ...limits]);
      });
    } catch (error) {
      if (hasHung(error)) throw error;
      // A server runs without them; only a speed limit can't be kept.
      return warning(`Interfaces can’t be limited. ${wordsOf(error)}`);
    }
    return good('Interfaces can be limited.');
  },
  async 'guest agents'({ call }) {
    const names = (await call(['list', '--name'])).split(/\s+/).filter((name) => /^vm-\d+$/.test(name));
    const asked = names.slice(0, agentsMax);
    let count = 0;
    for (const name of asked)
      if (/org\.qemu\.guest_agent\.0' state='connected'/.test(await call(['dumpxml', name]))) count += 1;
    if (asked.length === 0) return good('No server runs here yet.');
    const words = `${count} of ${asked.length} servers run a guest agent`;
    return count === asked.length
      ? good(`${words}.`)
      : warning(`${words}; in the others a new root password holds from their next boot.`);
  },
};

async function checkBridges(call: Virsh, bridges: readonly string[]): Promise<Result> {
  for (const bridge of bridges) {
    try {
      await withTrial({ call, bridge }, '', async () => {});
    } catch (error) {
      if (!/No such device|Cannot get interface MTU/i.test(complaintOf(error))) throw error;
      return bad(`The node has no bridge ${bridge}.`);
    }
  }
  return good(`A server can be connected to ${bridges.join(' and ')}.`);
}

/** Of a large node the first ones tell enough. */
const agentsMax = 20;

async function hasHardware(call: Virsh): Promise<boolean> {
  return /<domain type='kvm'/.test(await call(['capabilities']));
}

const deviceOfTrial = (name: string) => `svcc${name.slice(-6)}`;

/** Starts a domain with one interface, paused, for as long as `use` takes. */
async function withTrial(
  { call, bridge }: Pick<Site, 'call' | 'bridge'>,
  more: string,
  use: (name: string) => Promise<void>,
): Promise<void> {
  const name = `svc-check-${randomBytes(3).toString('hex')}`;
  const type = (await hasHardware(call)) ? 'kvm' : 'qemu';
  const xml = `<domain type='${type}'>
  <name>${name}</name>
  <memory unit='MiB'>16</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64'>hvm</type></os>
  <devices>
    <interface type='bridge'>
      <mac address='52:54:00:00:00:00'/>
      <source bridge='${bridge}'/>
      <target dev='${deviceOfTrial(name)}'/>
      <model type='virtio'/>
      ${more}
    </interface>
  </devices>
</domain>
`;
  await withFile('trial.xml', xml, (file) => call(['create', file, '--paused']));
  try {
    await use(name);
  } finally {
    await call(['destroy', name]);
  }
}

/** Ends the domains of checks that died. */
async function endTrials(call: Virsh): Promise<void> {
  const names = (await call(['list', '--all', '--name'])).split(/\s+/);
  for (const name of names) if (trialPattern.test(name)) await call(['destroy', name]);
}
