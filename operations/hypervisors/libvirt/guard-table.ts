/**
 * The rest of the guard, which network filters can't hold: what neighbor discovery says, fragments, cut headers. It is a table of nftables
 * at the node, with chains of the lab's guard for each NIC.
 *
 * virsh gives nft no rules. So each NIC has a network of libvirt, `svc-guard-<filter>`, that connects nothing, and a hook of the node
 * (`guard-hook`) passes on what is written in it when it starts, which it also does with the node. A network named
 * `svc-guard` says that the node has the hook: without it, none is made.
 */
import { CodedError } from '#common/errors/index.ts';
import { guardChains } from '#contracts/guard-rules.ts';
import { uuidOf } from './domain-xml.ts';
import { complaintOf, tolerate, type Virsh, withFile } from './run-virsh.ts';

const marker = 'svc-guard';
const table = 'bridge svc_guard';

export interface GuardedNic {
  mac: string;
  addresses: readonly string[];
  isGuarded: boolean;
}

/** Has the table hold what the NIC's filters hold, which `read` says. */
export async function applyGuardTable(call: Virsh, filter: string, read: () => Promise<GuardedNic>) {
  if (!(await listNetworks(call)).includes(marker)) return;
  const { isGuarded, ...nic } = await read();
  const [on, off] = rulesOf(filter, nic);
  await apply(call, `${marker}-${filter}`, isGuarded ? on : off, off);
}

/** Takes the guest, which is gone, or one of its private NICs, out of the table. */
export async function clearGuardTable(call: Virsh, own: RegExp): Promise<void> {
  const networks = (await listNetworks(call)).filter((name) => own.test(name.slice(marker.length + 1)));
  for (const network of networks) {
    const xml = await call(['net-dumpxml', network, '--inactive']);
    const off = Buffer.from(/ off=["']([A-Za-z0-9+/=]+)/.exec(xml)?.[1] ?? '', 'base64').toString();
    await apply(call, network, off, off);
    await call(['net-destroy', network]);
    await call(['net-undefine', network]);
  }
}

/** Rules for `nft -f` that guard the NIC, and those that no longer do; both from whichever state. */
function rulesOf(filter: string, nic: { mac: string; addresses: readonly string[] }): [string, string] {
  const chains = guardChains(nic, (reason) => `counter drop comment "${reason}"`, `${filter}-`);
  const each = (command: string) => chains.map(({ name }) => `${command} chain ${table} ${name}`);
  const element = `element ${table} nics { ${nic.mac} : goto ${filter}-port }`;
  const on = [
    `add table ${table}`,
    `add map ${table} nics { type ether_addr : verdict; }`,
    // Behind the filters, which have looked at the source MAC.
    `add chain ${table} servers { type filter hook prerouting priority -200; }`,
    `flush chain ${table} servers`,
    `add rule ${table} servers ether saddr vmap @nics`,
    ...each('add'),
    ...each('flush'),
    ...chains.flatMap(({ name, rules }) => rules.map((rule) => `add rule ${table} ${name} ${rule}`)),
    `add ${element}`,
  ];
  const lines = (list: readonly string[]) => list.map((line) => `${line}\n`).join('');
  return [lines(on), lines([...on, `delete ${element}`, ...each('flush'), ...each('delete')])];
}

/** Has the hook run the rules, now and whenever the node starts. Until then the former ones hold. */
async function apply(call: Virsh, network: string, rules: string, off: string): Promise<void> {
  await withFile('network.xml', networkXml(network, rules, off), (file) => call(['net-define', file]));
  await tolerate(call(['net-destroy', network]), /not active/i);
  await call(['net-start', network]);
  await call(['net-autostart', network]);
}

function networkXml(name: string, rules: string, off: string): string {
  const [content, later] = [rules, off].map((text) => Buffer.from(text).toString('base64'));
  return `<network>
  <name>${name}</name>
  <uuid>${uuidOf(name)}</uuid>
  <metadata>
    <svc:guard xmlns:svc='https://svc/guard' off='${later}'>${content}</svc:guard>
  </metadata>
  <forward mode='bridge'/>
  <bridge name='${marker}'/>
</network>
`;
}

const listNetworks = async (call: Virsh) => (await call(['net-list', '--all', '--name'])).split(/\s+/);

/** Whether the node has the hook; throws where it should and does not run it. */
export async function checkGuardHook(call: Virsh): Promise<boolean> {
  if (!(await listNetworks(call)).includes(marker)) return false;
  const trial = `${marker}-check`;
  try {
    await withFile('network.xml', networkXml(trial, 'refuse', ''), (file) => call(['net-create', file]));
  } catch (error) {
    if (/hook/i.test(complaintOf(error))) return true;
    throw error;
  }
  await call(['net-destroy', trial]);
  throw new CodedError('hypervisor.failed', 'The hook svc-guard does not run: restart libvirtd.');
}
