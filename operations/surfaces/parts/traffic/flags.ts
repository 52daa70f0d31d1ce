/** What happened to servers, as flags on the time axis of their charts. Where a flag leads, the surface says. */
import { titleOfClass } from '#contracts/attack-classes.ts';
import { lossOf, type MinuteReason } from '#contracts/minute-reasons.ts';
import { keptMs } from '#contracts/retention.ts';
import type { Actor } from '#operations/accounts/index.ts';
import { addressFilters, type Exploration, type StepRow } from '#operations/protect/index.ts';
import {
  type ServerHistory,
  type ToldChange,
  toldEventsMax,
  toldServersMax,
} from '#operations/server-history/index.ts';
import type { AddressCondition, ServerEvent } from '#operations/views/event-store.ts';
import type { ServerAction } from '#operations/views/server-store.ts';
import type { TrafficServer } from '#operations/views/traffic-server-store.ts';
import type { Filter } from '#service-kit/explorer/index.ts';
import type { ChartFlag, Tone } from '#service-kit/pages/index.ts';
import { actionWords } from '../servers.ts';

/** The page that says more of an event; undefined where none does. */
export type EventHref = (event: ServerEvent) => string | undefined;

/** Who looks, and where the flags lead. */
export interface FlagSource {
  history: ServerHistory;
  actor: Actor;
  hrefOf: EventHref;
}

interface FlagsAsk {
  servers: readonly Pick<TrafficServer, 'id' | 'name' | 'isDestroyed'>[];
  /** These are all servers that the actor reaches. */
  isEveryServer?: boolean;
  addresses?: readonly AddressCondition[];
  range: { fromMs: number; toMs: number };
}

export interface Flags {
  /** In the order of time. */
  flags: ChartFlag[];
  /** What is left out, as a sentence; null: nothing. */
  note: string | null;
}

/** The flags of a chart of these servers; with several of them a flag names its server. */
export async function readFlags(
  { history, actor, hrefOf }: FlagSource,
  { servers, isEveryServer = false, addresses = [], range }: FlagsAsk,
): Promise<Flags> {
  const { fromMs, toMs } = range;
  const serverIds = servers.map(({ id }) => id);
  const { events, isOfAttacks, hasMore } = await history.list(actor, {
    ...{ serverIds, isEveryServer, addresses, fromMs, toMs },
  });
  const named = new Set(events.map(({ serverId }) => serverId));
  const byId = new Map(servers.filter(({ id }) => named.has(id)).map((server) => [server.id, server]));
  const flags = events.map((event) => {
    const server = byId.get(event.serverId);
    const text = eventText(event);
    return {
      timeMs: event.at.getTime(),
      text: servers.length === 1 ? text : `${server?.name ?? `server ${event.serverId}`}: ${text}`,
      // A destroyed server has no page of its own.
      href: server?.isDestroyed && !isObserved(event) ? undefined : hrefOf(event),
      tone: toneOf(event),
    };
  });
  return { flags: flags.reverse(), note: noteOf(isOfAttacks, hasMore) };
}

/** The flags of an explorer's view: of the servers and the addresses that pass its filters. */
export function readExplorerFlags(
  source: FlagSource,
  { servers, reached }: Pick<Exploration, 'servers' | 'reached'>,
  { fixed = [] }: { fixed?: readonly Filter[] },
  { filters, range }: { filters: readonly Filter[]; range: FlagsAsk['range'] },
): Promise<Flags> {
  const isEveryServer = servers.length === reached.length;
  const addresses = addressFilters([...filters, ...fixed]);
  return readFlags(source, { servers, isEveryServer, addresses, range });
}

const isObserved = ({ kind }: ServerEvent) => kind === 'attack' || kind === 'scan';

function noteOf(isOfAttacks: boolean, hasMore: boolean): string | null {
  const newest = (what: string) => (hasMore ? `The newest ${toldEventsMax} ${what} are marked.` : '');
  if (!isOfAttacks) return newest('events') || null;
  const others = `With more than ${toldServersMax} servers only attacks are marked. Filter for fewer servers to see deploys, power, firewalls, networks and scans.`;
  return [others, newest('attacks')].filter(Boolean).join(' ');
}

const changeWords: Readonly<Record<ToldChange, string>> = {
  'firewall.replace': 'Firewall replaced',
  'firewall.switch': 'Firewall switched on or off',
  'firewall.policies': 'Firewall default action changed',
  'firewall.add': 'Firewall rule added',
  'firewall.edit': 'Firewall rule edited',
  'firewall.remove': 'Firewall rule removed',
  'firewall.move': 'Firewall rule moved',
  'network.attach_server': 'Attached to a private network',
  'network.detach_server': 'Detached from a private network',
  'protect.change_settings': 'Protection settings changed',
};

const endedWords: Readonly<Record<ServerAction['command'], { done: string; failed: string }>> = {
  create: { done: 'Deployed', failed: 'Deploy failed' },
  start: { done: 'Started', failed: 'Start failed' },
  shutdown: { done: 'Shut down', failed: 'Shutdown failed' },
  stop: { done: 'Powered off', failed: 'Power-off failed' },
  reboot: { done: 'Rebooted', failed: 'Reboot failed' },
  reset: { done: 'Reset', failed: 'Reset failed' },
  rebuild: { done: 'Rebuilt', failed: 'Rebuild failed' },
  resize: { done: 'Resized', failed: 'Resize failed' },
  reset_password: { done: 'New root password', failed: 'New root password failed' },
  attach_address: { done: 'Address attached', failed: 'Attaching an address failed' },
  detach_address: { done: 'Address detached', failed: 'Detaching an address failed' },
  create_snapshot: { done: 'Snapshot taken', failed: 'Snapshot failed' },
  restore_snapshot: { done: 'Snapshot restored', failed: 'Restoring a snapshot failed' },
  rescue: { done: 'Rescue system started', failed: 'Rescue failed' },
  unrescue: { done: 'Rescue ended', failed: 'Ending the rescue failed' },
  attach_iso: { done: 'ISO attached', failed: 'Attaching an ISO failed' },
  detach_iso: { done: 'ISO detached', failed: 'Detaching the ISO failed' },
  destroy: { done: 'Destroyed', failed: 'Destroy failed' },
};

/** Without a command of ours: the server halted by itself, or was switched at the hypervisor. */
const powerWords: Readonly<Record<string, string>> = {
  running: 'Found running',
  stopped: 'Found stopped',
  unknown: 'Power state unknown',
};

const scanWords: Readonly<Record<string, string>> = {
  manual: 'Port scan',
  automatic: 'First port scan',
  routine: 'Daily port scan',
};

function eventText(event: ServerEvent): string {
  const { kind, name, address } = event;
  switch (kind) {
    case 'action':
      return actionText(event);
    case 'power':
      return powerWords[name] ?? `Power state ${name}`;
    case 'change':
      if (name === 'firewall.switch' && event.isOn !== null)
        return `Firewall switched ${event.isOn ? 'on' : 'off'}`;
      return changeWords[name as ToldChange];
    case 'attack':
      return `${event.isDrill ? 'Drill: ' : ''}${titleOfClass(name)}`;
    case 'scan':
      return `${scanWords[name] ?? 'Port scan'} of ${address}`;
  }
}

function actionText({ name, status, outcome }: ServerEvent): string {
  const command = name as ServerAction['command'];
  const { done, failed } = endedWords[command];
  if (status === 'error') return failed;
  if (status !== 'success') return actionWords[command].going;
  if (outcome === 'signal_sent') return 'Asked to shut down';
  return outcome === 'timeout' ? 'Powered off, it did not shut down in time' : done;
}

function toneOf({ kind, name, status, isDrill }: ServerEvent): Tone {
  if (kind === 'attack') return isDrill ? 'info' : 'bad';
  if (status === 'error' || (kind === 'power' && name === 'unknown')) return 'warn';
  return kind === 'scan' ? 'info' : 'neutral';
}

/** What a chart says beside the value of a step that was not observed as a whole; undefined: nothing. */
export function lossNote(reason: MinuteReason | null): string | undefined {
  return lossOf(reason)?.short;
}

/** A time without values, or with a part of them. */
export interface Gap {
  fromMs: number;
  toMs: number;
  text: string;
  /** The same as a sentence, where there is more to say. */
  why?: string | undefined;
  tone: 'warn' | 'neutral';
}

interface GapFacts {
  steps: readonly Pick<StepRow, 'at' | 'minutes' | 'reason'>[];
  range: { fromMs: number; toMs: number; stepSeconds: number };
  /** When the server, or the first of several, was created, or was first observed. */
  createdMs: number;
  /** What is said of the time before that. Default: of one server. */
  before?: string;
  /** Times at which the server was switched off, in time order. */
  off: readonly { fromMs: number; toMs: number }[];
  nowMs: number;
  /** Default: of minutes. */
  pace?: Pace;
}

/** What a chart is made of. */
interface Pace {
  /** How long after its end it is there for certain. */
  deliveryMs: number;
  /** What is said of one that is missing without a known reason. */
  missing: Pick<Gap, 'text' | 'tone'>;
}

/** Months are up to three days shorter in a row. */
const keptForMs = keptMs('traffic') - 3 * 86_400_000;
/** A minute arrives one to two minutes after its end. */
const byMinutes: Pace = { deliveryMs: 180_000, missing: { text: 'no observation', tone: 'warn' } };
/** A bucket of ten seconds arrives within 15 seconds; of an address without packets there is none. */
export const byLiveBuckets: Pace = {
  deliveryMs: 20_000,
  missing: { text: 'no packets, or not observed', tone: 'neutral' },
};

/** The times of a range that were not observed as a whole, each with its reason; neighbours of one reason are one. */
export function gapsOf(facts: GapFacts): Gap[] {
  const { range, steps } = facts;
  const stepMs = range.stepSeconds * 1000;
  const byTime = new Map(steps.map((step) => [step.at.getTime(), step]));
  const gaps: Gap[] = [];
  for (let atMs = range.fromMs; atMs < range.toMs; atMs += stepMs) {
    const said = reasonAt(facts, atMs, atMs + stepMs, byTime.get(atMs));
    if (said === null) continue;
    const last = gaps.at(-1);
    if (last && last.toMs === atMs && last.text === said.text) last.toMs = atMs + stepMs;
    else gaps.push({ fromMs: atMs, toMs: atMs + stepMs, ...said });
  }
  return gaps;
}

type Said = Pick<Gap, 'text' | 'why' | 'tone'>;

function reasonAt(
  { createdMs, before = 'before the server was created', off, nowMs, pace = byMinutes }: GapFacts,
  fromMs: number,
  toMs: number,
  step: GapFacts['steps'][number] | undefined,
): Said | null {
  const { deliveryMs, missing } = pace;
  const loss = lossOf(step?.reason ?? null);
  const known: Said | null = loss ? { text: loss.short, why: loss.long, tone: 'warn' } : null;
  if (step !== undefined && step.minutes > 0) return known;
  const neutral = (text: string): Said => ({ text, tone: 'neutral' });
  // A first step of which little was left, or too little to be delivered, is no fault.
  if (fromMs < createdMs && toMs - createdMs < deliveryMs) return neutral(before);
  if (fromMs > nowMs) return neutral('not yet');
  if (toMs > nowMs) return neutral('in progress');
  if (known !== null) return known;
  if (off.some((each) => each.fromMs <= fromMs && each.toMs >= toMs)) return neutral('server switched off');
  if (nowMs - toMs < deliveryMs) return neutral('not delivered yet');
  if (nowMs - toMs > keptForMs) return neutral('kept no longer');
  return missing;
}

/** When a server was off, by its finished actions (newest first) and its present state. */
export function offTimes(
  actions: readonly ServerAction[],
  present: { isOff: boolean; sinceMs: number; nowMs: number },
): { fromMs: number; toMs: number }[] {
  const times: { fromMs: number; toMs: number }[] = [];
  let offSince: number | null = null;
  for (const action of actions.toReversed()) {
    if (action.status !== 'success' || action.finishedAt === null) continue;
    const atMs = Date.parse(action.finishedAt);
    const isStop =
      action.command === 'stop' || (action.command === 'shutdown' && action.outcome !== 'signal_sent');
    if (isStop) offSince ??= atMs;
    else if (action.command === 'start' && offSince !== null) {
      times.push({ fromMs: offSince, toMs: atMs });
      offSince = null;
    }
  }
  if (present.isOff) times.push({ fromMs: offSince ?? present.sinceMs, toMs: present.nowMs });
  return times;
}
