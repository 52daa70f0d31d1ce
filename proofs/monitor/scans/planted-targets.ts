/** Faults of the choice of scan targets that the proof `scan-targets` must detect. */
import { type Choice, type ChosenTarget, chooseTargets } from '#monitor/scans/choose-targets.ts';
import { listScanCandidates, readScanHost, type ScanCandidate, type ScanHost } from '#monitor/views/index.ts';
import type { Queryable } from '#service-kit/postgres/index.ts';

type Change = (input: { host: ScanHost; candidates: ScanCandidate[] }) => void;

const eachCandidate =
  (change: Partial<ScanCandidate>): Change =>
  ({ candidates }) => {
    for (const one of candidates) Object.assign(one, change);
  };
const ofHost =
  (change: Partial<ScanHost>): Change =>
  ({ host }) =>
    Object.assign(host, change);
const eachInterface =
  (change: (one: ScanHost['interfaces'][number]) => object): Change =>
  ({ host }) => {
    host.interfaces = host.interfaces.map((one) => ({ ...one, ...change(one) }));
  };

/** What the choice is told instead. */
const inputFaults = {
  old_servers: eachCandidate({ vmAgeSeconds: 0 }),
  old_interfaces: eachCandidate({ interfaceAgeSeconds: 0 }),
  stopped: eachCandidate({ state: 'running' }),
  shared_address: eachCandidate({ holders: 1 }),
  shared_mac: eachCandidate({ macHolders: 1 }),
  host_addresses: ofHost({ hostAddresses: [] }),
  host_of_old_interfaces: ofHost({ interfacesAgeSeconds: 0 }),
  ambiguous_node: ofHost({ clusters: 1 }),
  interface_down: eachInterface(() => ({ isUp: true })),
  no_bond: eachInterface(() => ({ master: '' })),
  no_vlan: eachInterface(() => ({ parent: '' })),
  other_topology: ({ host }) => host.captures.push({ name: 'mgmt0', role: 'uplink' }),
  link_local_source: eachInterface(({ addresses }) => ({
    addresses: addresses.map((text) => text.replace(/^fe80:/, 'fd80:')),
  })),
  uplink_is_bridge: ({ host }) => {
    for (const one of host.captures) Object.assign(one, { role: 'bridge' });
  },
} satisfies Record<string, Change>;

/** What is made of the choice instead. */
const choiceFaults = {
  private_addresses({ targets, excluded }) {
    const [first] = targets;
    for (const { candidate, why } of excluded)
      if (why === 'not_public' && first) targets.push({ ...first, candidate });
  },
  one_lost: ({ targets }) => void targets.pop(),
  other_family(choice) {
    const isSix = (text: string) => text.includes(':');
    const other = choice.targets.find((one) => isSix(one.sourceAddress));
    for (const one of choice.targets)
      if (other && !isSix(one.sourceAddress)) one.sourceAddress = other.sourceAddress;
  },
  other_server: ({ targets }) => {
    if (targets.length > 1) targets[0]!.candidate.vmId = targets[1]!.candidate.vmId;
  },
} satisfies Record<string, (choice: Choice) => void>;

type InputFault = keyof typeof inputFaults;
type ChoiceFault = keyof typeof choiceFaults;
export type Plant = InputFault | ChoiceFault;
export const plants = [...Object.keys(inputFaults), ...Object.keys(choiceFaults)] as Plant[];

/** The targets of a plan that is made with this fault. */
export async function makePlantedPlan(reader: Queryable, sensorId: number, plant: Plant) {
  const host = (await readScanHost(reader, sensorId))!;
  const candidates = await listScanCandidates(reader, sensorId, 1_000);
  if (plant in inputFaults) inputFaults[plant as InputFault]({ host, candidates });
  const choice = chooseTargets(host, candidates, false);
  if (plant in choiceFaults) choiceFaults[plant as ChoiceFault](choice);
  return choice.targets.map(toWire);
}

const toWire = ({ candidate, interface: name, sourceAddress }: ChosenTarget) => ({
  ...{ vm_id: candidate.vmId, nic_id: candidate.interfaceId, address: candidate.address },
  ...{ interface: name, source_address: sourceAddress },
});
