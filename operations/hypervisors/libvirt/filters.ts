/**
 * Network filters of libvirt (nwfilter): what a guest's NICs may send, and the firewall of its owner.
 *
 * Each NIC is bound to a filter of its own, `svc-vm-7` for the public one and `svc-vm-7-pn-31` for one on a private network. It
 * refers to a guard and, for the public NIC, to a firewall; libvirt applies a filter that is defined anew to NICs that run, and
 * to each start. Everything in a filter was checked against a narrow pattern or is made here.
 */
import { CodedError, describeError } from '#common/errors/index.ts';
import { formatAddress, linkLocalOf, parseAddress, parsePrefix } from '#common/ip/index.ts';
import type { FilterPlan, FilterRule } from '../guest.ts';
import { checked, filterName, uuidOf } from './domain-xml.ts';
import { applyGuardTable, clearGuardTable, type GuardedNic } from './guard-table.ts';
import { type Virsh, withFile } from './run-virsh.ts';

const guardOf = (filter: string) => `${filter}-guard`;
const firewallOf = (filter: string) => `${filter}-firewall`;

/** Defines what a NIC that is to be made is bound to: it is guarded, and nothing else is filtered. */
export async function defineNicFilters(
  call: Virsh,
  filter: string,
  nic: { mac: string; addresses: readonly string[] },
): Promise<void> {
  await defineGuard(call, filter, nic);
  if (!isPrivate(filter)) await define(call, firewallOf(filter), '');
  await bind(call, filter, true);
  await applyTable(call, filter);
}

/** Lets a NIC that has filters send from these addresses, and no others, where it is guarded. */
export async function changeGuard(
  call: Virsh,
  filter: string,
  nic: { mac: string; addresses: readonly string[] },
): Promise<void> {
  await defineGuard(call, filter, nic);
  await applyTable(call, filter);
}

export function defineGuard(call: Virsh, filter: string, nic: { mac: string; addresses: readonly string[] }) {
  return define(call, guardOf(filter), guardRules(nic));
}

/** Replaces the firewall of the guest's public NIC; null: there is none. */
export async function defineFirewall(call: Virsh, guest: string, plan: FilterPlan | null): Promise<void> {
  const filter = filterName(guest, null);
  await define(call, firewallOf(filter), plan === null ? '' : firewallRules(plan));
}

/** Guards all NICs of the guest, or none. */
export async function switchGuards(call: Virsh, guest: string, isOn: boolean): Promise<void> {
  const bound = (await listFilters(call, guest)).filter((name) => !/-(guard|firewall)$/.test(name));
  if (bound.length === 0)
    throw new CodedError('hypervisor.refused', `${guest} was made without filters. Provision it again.`);
  for (const filter of bound) {
    await bind(call, filter, isOn);
    await applyTable(call, filter);
  }
}

const applyTable = (call: Virsh, filter: string) =>
  applyGuardTable(call, filter, () => readNic(call, filter));

/** What a NIC is guarded for by its filters, and whether it is. */
async function readNic(call: Virsh, filter: string): Promise<GuardedNic> {
  const [bound, guard] = [
    await call(['nwfilter-dumpxml', filter]),
    await call(['nwfilter-dumpxml', guardOf(filter)]),
  ];
  const sources = [...guard.matchAll(/<ip(?:v6)? srcipaddr='([^']+)'/g)].map(([, address]) => address!);
  return {
    mac: checked('mac', /srcmacaddr='([^']+)'/.exec(guard)?.[1] ?? null),
    addresses: [...new Set(sources)].filter((address) => !/^(fe80:|::$|0\.0\.0\.0$)/.test(address)),
    isGuarded: bound.includes(`'${guardOf(filter)}'`),
  };
}

/** Removes the filters of the guest, which is gone, or of one of its private NICs. */
export async function removeFilters(call: Virsh, guest: string, networkId: number | null = null) {
  const find = async () =>
    (await listFilters(call, guest)).filter(
      (name) => networkId === null || `${name}-`.startsWith(`${filterName(guest, networkId)}-`),
    );
  // What refers to others goes first: the shorter names.
  for (const name of (await find()).toSorted((a, b) => a.length - b.length)) {
    try {
      await call(['nwfilter-undefine', name]);
    } catch (error) {
      // A guest that has not let go of its NIC yet: the filter guards it until then, and goes with the guest.
      const isHeld = networkId !== null && name === filterName(guest, networkId);
      if (isHeld && /in use/i.test(describeError(error))) return;
      throw error;
    }
  }
  const left = await find();
  if (left.length > 0)
    throw new CodedError('hypervisor.failed', `The filters ${left.join(', ')} are still there.`);
  const own = networkId === null ? `${filterName(guest, null)}(-pn-\\d+)?` : filterName(guest, networkId);
  await clearGuardTable(call, new RegExp(`^${own}$`));
}

/** The names of the guest's filters. */
export async function listFilters(call: Virsh, guest: string): Promise<string[]> {
  const own = new RegExp(`^${filterName(guest, null)}(-pn-\\d+)?(-guard|-firewall)?$`);
  const names = (await call(['nwfilter-list'])).split('\n').map((line) => line.trim().split(/\s+/)[1] ?? '');
  return names.filter((name) => own.test(name));
}

const isPrivate = (filter: string) => /-pn-\d+$/.test(filter);

function bind(call: Virsh, filter: string, isGuarded: boolean): Promise<void> {
  const parts = [isGuarded ? guardOf(filter) : null, isPrivate(filter) ? null : firewallOf(filter)];
  const references = parts.flatMap((name) => (name === null ? [] : [`  <filterref filter='${name}'/>\n`]));
  return define(call, filter, references.join(''));
}

async function define(call: Virsh, name: string, content: string): Promise<void> {
  const uuid = `<uuid>${uuidOf(name)}</uuid>`;
  const xml = `<filter name='${name}' chain='root'>\n  ${uuid}\n${content}</filter>\n`;
  await withFile('filter.xml', xml, (file) => call(['nwfilter-define', file]));
  // A guest with another guard than this one may forge, so a node that said it was done has to be.
  const there = await call(['nwfilter-dumpxml', name]);
  if (essence(there) !== essence(xml))
    throw new CodedError('hypervisor.failed', `The filter ${name} is not as it was defined.`);
}

/** What libvirt writes as it was told: the number of rules, what they do, their addresses, and the other filters. */
const essence = (xml: string) =>
  (xml.match(/<rule action='\w+' direction='\w+'|\w*ipaddr='[^']+'|<filterref filter='[^']+'/g) ?? [])
    .toSorted()
    .join();

type Attributes = Readonly<Record<string, string>>;

function createRules() {
  const lines: string[] = [];
  return {
    /** The rules in their order; libvirt sorts them by priority. */
    add(action: 'accept' | 'drop', direction: 'in' | 'out', kind: string, attributes: Attributes = {}) {
      const shown = Object.entries(attributes).map(([key, value]) => ` ${key}='${value}'`);
      const priority = lines.length - 900;
      lines.push(
        `  <rule action='${action}' direction='${direction}' priority='${priority}'><${kind}${shown.join('')}/></rule>\n`,
      );
    },
    text: () => lines.join(''),
  };
}

/**
 * Protocols that a guest may send over IPv6, by number: IPv4 and IPv6 in it, TCP, UDP, fragments after the first, GRE, ESP, none, OSPF,
 * PIM, VRRP, SCTP and UDP-Lite. One is known only where the header chain is whole.
 */
const protocols6 = [4, 41, 6, 17, 44, 47, 50, 59, 89, 103, 112, 132, 136].map(String);
const [igmp, udp, icmpv6] = ['2', '17', '58'];
/** First and last types of ICMPv6: all but what routers send. */
const types6 = [
  ['0', '133'],
  ['135', '136'],
  ['139', '255'],
] as const;

/**
 * What the NIC may send. libvirt's filters don't see the target of neighbor discovery, so an advertisement is checked by its
 * sender alone.
 */
export function guardRules(nic: { mac: string; addresses: readonly string[] }): string {
  const mac = checked('mac', nic.mac);
  const addresses = nic.addresses.map(canonical);
  const own4 = addresses.filter((address) => !address.includes(':'));
  const own6 = [linkLocalOf(mac), ...addresses.filter((address) => address.includes(':'))];
  const rules = createRules();
  const accept = (kind: string, attributes: Attributes) => rules.add('accept', 'out', kind, attributes);
  const drop = (kind: string, attributes: Attributes = {}) => rules.add('drop', 'out', kind, attributes);
  drop('mac', { match: 'no', srcmacaddr: mac });
  for (const opcode of ['Request', 'Reply'])
    for (const address of own4)
      accept('arp', {
        hwtype: '1',
        protocoltype: '0x800',
        opcode,
        arpsrcmacaddr: mac,
        arpsrcipaddr: address,
      });
  for (const address of own4)
    accept('arp', { opcode: 'Request', arpsrcmacaddr: mac, arpsrcipaddr: '0.0.0.0', arpdstipaddr: address });
  drop('arp');
  drop('ip', { protocol: udp, dstportstart: '68' });
  const client = { srcipaddr: '0.0.0.0', dstipaddr: '255.255.255.255', protocol: udp };
  accept('ip', { ...client, srcportstart: '68', dstportstart: '67' });
  drop('ip', { protocol: udp, srcportstart: '67' });
  for (const address of own4) accept('ip', { srcipaddr: address });
  accept('ip', { srcipaddr: '0.0.0.0', dstipaddr: '224.0.0.0', dstipmask: '4', protocol: igmp });
  drop('ip');
  drop('ipv6', { protocol: udp, dstportstart: '546' });
  drop('ipv6', { protocol: udp, srcportstart: '547' });
  for (const srcipaddr of own6) {
    for (const protocol of protocols6) accept('ipv6', { srcipaddr, protocol });
    for (const [type, typeend] of types6) accept('ipv6', { srcipaddr, protocol: icmpv6, type, typeend });
  }
  for (const type of ['131', '132', '133', '143'])
    accept('ipv6', { srcipaddr: '::', protocol: icmpv6, type });
  // A duplicate check goes to the solicited-node address of what it checks.
  for (const address of new Set(own6.map(solicitedNode)))
    accept('ipv6', { srcipaddr: '::', dstipaddr: address, protocol: icmpv6, type: '135' });
  drop('ipv6');
  // Every other EtherType, and what has a VLAN tag.
  drop('mac');
  return rules.text();
}

function canonical(text: string): string {
  const bytes = parseAddress(text);
  if (bytes === null)
    throw new CodedError('hypervisor.refused', `${JSON.stringify(text)} is no address of a guest.`);
  return formatAddress(bytes);
}

function solicitedNode(address: string): string {
  const last = [...parseAddress(address)!.subarray(13)];
  return formatAddress(Uint8Array.from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, ...last]));
}

/** The rules in the order of the plan, the first that fits decides. Answers to what was allowed always pass. */
export function firewallRules(plan: FilterPlan): string {
  const rules = createRules();
  const ways = [
    { direction: 'inbound', way: 'in', peer: 'src', policy: plan.inboundPolicy },
    { direction: 'outbound', way: 'out', peer: 'dst', policy: plan.outboundPolicy },
  ] as const;
  for (const { way } of ways)
    for (const kind of ['all', 'all-ipv6']) rules.add('accept', way, kind, { state: 'ESTABLISHED,RELATED' });
  for (const { direction, way, peer } of ways)
    for (const rule of plan.rules)
      if (rule.direction === direction)
        for (const { kind, attributes } of matchesOf(rule, peer))
          rules.add(rule.action, way, kind, attributes);
  for (const { way, policy } of ways)
    if (policy === 'drop')
      for (const kind of ['all', 'all-ipv6']) rules.add('drop', way, kind, { state: 'NEW,INVALID' });
  return rules.text();
}

const kinds: Record<FilterRule['protocol'], { 4: string; 6: string }> = {
  any: { 4: 'all', 6: 'all-ipv6' },
  tcp: { 4: 'tcp', 6: 'tcp-ipv6' },
  udp: { 4: 'udp', 6: 'udp-ipv6' },
  icmp: { 4: 'icmp', 6: 'icmpv6' },
};

/** A rule of the plan as matches of libvirt: one of each family, or one of each peer. */
function matchesOf(rule: FilterRule, peer: 'src' | 'dst'): { kind: string; attributes: Attributes }[] {
  const ports: Attributes = {};
  const [from, to = from] = rule.ports?.split('-').map(Number) ?? [];
  if (from !== undefined) {
    if (!(Number.isInteger(from) && Number.isInteger(to)))
      throw new CodedError('hypervisor.refused', `${JSON.stringify(rule.ports)} are no ports.`);
    Object.assign(ports, { dstportstart: String(from), dstportend: String(to) });
  }
  // What is established passes before, so a rule decides on what begins.
  const attributes = { state: 'NEW', ...ports };
  if (rule.peers.length === 0)
    return ([4, 6] as const).map((family) => ({ kind: kinds[rule.protocol][family], attributes }));
  return rule.peers.map((text) => {
    const prefix = parsePrefix(text);
    if (prefix === null) throw new CodedError('hypervisor.refused', `${JSON.stringify(text)} is no peer.`);
    const address = {
      [`${peer}ipaddr`]: formatAddress(prefix.bytes),
      [`${peer}ipmask`]: String(prefix.length),
    };
    return {
      kind: kinds[rule.protocol][prefix.bytes.length === 4 ? 4 : 6],
      attributes: { ...attributes, ...address },
    };
  });
}
