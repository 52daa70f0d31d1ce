/** Rules of hand-off: what operators write, and which attacks a rule is for. */
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import { oneLine } from '#common/text/index.ts';
import { filterOf } from '#contracts/attack-classes.ts';
import { packetBytesMax } from '#contracts/sensor-api/filter.ts';
import type { Incident } from '#monitor/incidents/index.ts';
import { parsePrefixes, parseRate } from '#monitor/protection/index.ts';
import { parseEndpointUrl, type TargetRules } from '#service-kit/webhooks/index.ts';

export const ruleKinds = ['command', 'webhook', 'blackhole', 'flowspec', 'filter'] as const;
export type RuleKind = (typeof ruleKinds)[number];
export const ruleModes = ['off', 'dry_run', 'on'] as const;
export type RuleMode = (typeof ruleModes)[number];
export const ruleDirections = ['inbound', 'outbound', 'both'] as const;
export type RuleDirection = (typeof ruleDirections)[number];

/** Where an action goes. */
export interface RuleTarget {
  /** Of a webhook. */
  url?: string;
  /** Of a command: the name of a file in the folder of commands. */
  command?: string;
  /** Of a blackhole or filters: the BGP peer, as the settings name it. */
  peer?: string;
  /** Of a blackhole: where its traffic is to go, by address family. */
  nextHop4?: string;
  nextHop6?: string;
  /** Of a filter: how long it counts before it drops; missing: until an operator lets it drop. */
  countSeconds?: number;
  /** Of a filter: it ends after so long, also while the attack goes on. */
  maxSeconds?: number;
  /** Of a filter: only packets of these IP total lengths. */
  lengthMin?: number;
  lengthMax?: number;
}

/** What an operator sets. */
export interface RuleSettings {
  name: string;
  kind: RuleKind;
  /** Canonical; only addresses in them are acted on. */
  prefixes: string[];
  direction: RuleDirection;
  /** An attack must reach one of the peaks that are set. */
  minPps: number | null;
  minBps: number | null;
  /** How long an action outlasts the recovery. */
  holdSeconds: number;
  target: RuleTarget;
}

export interface Rule extends RuleSettings {
  id: number;
  siteId: number;
  mode: RuleMode;
  revision: number;
  changedAtMs: number;
  changedBy: string;
}

/** Input of the form. */
export interface RuleInput {
  name: string;
  kind: string;
  prefixes: readonly string[];
  direction: string;
  minPps: string;
  minBps: string;
  holdSeconds: string;
  url?: string | undefined;
  command?: string | undefined;
  peer?: string | undefined;
  nextHop4?: string | undefined;
  nextHop6?: string | undefined;
  countSeconds?: string | undefined;
  maxSeconds?: string | undefined;
  lengthMin?: string | undefined;
  lengthMax?: string | undefined;
}

/** What this installation allows. */
export interface HandOffRules {
  webhooks: TargetRules;
  /** Names of the programs that rules may start. */
  commands: readonly string[];
  /** Names of the BGP peers. */
  peers: readonly string[];
}

export const ruleNameMax = 80;
export const rulesMax = 50;
export const prefixesMax = 256;
export const holdSecondsMin = 60;
export const holdSecondsMax = 86_400;
export const countSecondsMax = 3600;
export const maxSecondsMax = 604_800;
export const maxSecondsDefault = 86_400;
export const addressesMaxDefault = 10;
export const addressesMaxMost = 1000;

/** Valid settings. Throws `hand_off.invalid` with all wrong fields in `details.fields`. */
export function parseRule(input: RuleInput, allowed: HandOffRules): RuleSettings {
  const fields: Record<string, string> = {};
  const caught = <Value>(name: string, parse: () => Value): Value | null => {
    try {
      return parse();
    } catch (error) {
      if (!(error instanceof CodedError)) throw error;
      fields[name] = error.message;
      return null;
    }
  };
  const name = oneLine(input.name);
  if (name === '' || name.length > ruleNameMax)
    fields.name = `A rule's name has 1 to ${ruleNameMax} characters.`;
  const kind = ruleKinds.find((known) => known === input.kind) ?? null;
  if (!kind) fields.kind = `The kind is one of ${ruleKinds.join(', ')}.`;
  const bounds = { field: 'prefixes', atLeast: 1, atMost: prefixesMax, what: 'The list of allowed prefixes' };
  const prefixes = caught('prefixes', () => parsePrefixes(input.prefixes, bounds)) ?? [];
  const direction = ruleDirections.find((known) => known === input.direction);
  if (!direction) fields.direction = 'The direction is inbound, outbound or both.';
  else if (kind === 'filter' && direction === 'both')
    fields.direction = 'A filter has one direction: add a rule for each.';
  const holdSeconds = /^\d{1,6}$/.test(input.holdSeconds.trim()) ? Number(input.holdSeconds) : 0;
  if (holdSeconds < holdSecondsMin || holdSeconds > holdSecondsMax)
    fields.hold_seconds = `The hold time is ${holdSecondsMin} to ${holdSecondsMax} whole seconds.`;
  const minPps = caught('min_pps', () => parsePeak(input.minPps));
  const minBps = caught('min_bps', () => parsePeak(input.minBps));
  const target = kind ? parseTarget(kind, input, prefixes, allowed, caught) : {};
  const [first] = Object.values(fields);
  if (first !== undefined || !kind || !direction)
    throw new CodedError('hand_off.invalid', first ?? '', { fields });
  return { name, kind, prefixes, direction, minPps, minBps, holdSeconds, target };
}

function parsePeak(text: string): number | null {
  if (text.trim() === '') return null;
  const value = parseRate(text);
  if (value !== null && value >= 1 && value <= 1e14) return value;
  throw invalid('Write a number such as 200000, 200k or 1.5G, or leave it empty.');
}

type Caught = <Value>(name: string, parse: () => Value) => Value | null;

function parseTarget(
  kind: RuleKind,
  input: RuleInput,
  prefixes: readonly string[],
  allowed: HandOffRules,
  caught: Caught,
): RuleTarget {
  if (kind === 'blackhole' || kind === 'flowspec')
    return parseBgpTarget(kind, input, prefixes, allowed, caught);
  if (kind === 'filter') return parseFilterTarget(input, caught);
  if (kind === 'webhook') {
    const url = caught('url', () => parseEndpointUrl(input.url ?? '', allowed.webhooks));
    return url === null ? {} : { url };
  }
  const command = (input.command ?? '').trim();
  caught('command', () => {
    if (allowed.commands.includes(command)) return;
    throw invalid(
      allowed.commands.length === 0
        ? 'There are no commands: set SVC_HAND_OFF_COMMANDS to a folder with executable files.'
        : `Choose one of the commands: ${allowed.commands.slice(0, 20).join(', ')}.`,
    );
  });
  return { command };
}

function parseFilterTarget(input: RuleInput, caught: Caught): RuleTarget {
  const whole = (name: string, text: string | undefined, min: number, max: number) =>
    caught(name, () => {
      const given = (text ?? '').trim();
      if (given === '') return undefined;
      const value = /^\d{1,7}$/.test(given) ? Number(given) : -1;
      if (value >= min && value <= max) return value;
      throw invalid(`Write a whole number from ${min} to ${max}, or leave it empty.`);
    });
  const countSeconds = whole('count_seconds', input.countSeconds, 0, countSecondsMax);
  const maxSeconds = whole('max_seconds', input.maxSeconds, holdSecondsMin, maxSecondsMax);
  const lengthMin = whole('length_min', input.lengthMin, 0, packetBytesMax);
  const lengthMax = whole('length_max', input.lengthMax, lengthMin ?? 0, packetBytesMax);
  const given = Object.entries({
    countSeconds,
    maxSeconds: maxSeconds ?? maxSecondsDefault,
    lengthMin,
    lengthMax,
  });
  return Object.fromEntries(given.filter(([, value]) => typeof value === 'number'));
}

function parseBgpTarget(
  kind: RuleKind,
  input: RuleInput,
  prefixes: readonly string[],
  allowed: HandOffRules,
  caught: Caught,
): RuleTarget {
  const peer = (input.peer ?? '').trim();
  caught('peer', () => {
    if (allowed.peers.includes(peer)) return;
    throw invalid(
      allowed.peers.length === 0
        ? 'There are no BGP peers: set SVC_HAND_OFF_BGP_PEERS, such as 64512@127.0.0.1:179.'
        : `Choose one of the peers: ${allowed.peers.slice(0, 20).join(', ')}.`,
    );
  });
  if (kind === 'flowspec') return { peer };
  const hop = (name: string, text: string | undefined, bytes: 4 | 16) =>
    caught(name, () => parseHop(text ?? '', bytes, prefixes));
  const nextHop4 = hop('next_hop4', input.nextHop4, 4);
  const nextHop6 = hop('next_hop6', input.nextHop6, 16);
  return { peer, ...(nextHop4 && { nextHop4 }), ...(nextHop6 && { nextHop6 }) };
}

/** A next hop is needed where the list has prefixes of its family. */
function parseHop(text: string, bytes: 4 | 16, prefixes: readonly string[]): string | null {
  const family = bytes === 4 ? 'IPv4' : 'IPv6';
  if (text.trim() === '') {
    if (prefixes.every((prefix) => prefix.includes(':') !== (bytes === 16))) return null;
    throw invalid(`The list has ${family} prefixes: give their next hop.`);
  }
  const address = canonicalAddress(text.trim());
  if (address && parseAddress(address)!.length === bytes) return address;
  throw invalid(`Write an ${family} address, such as ${bytes === 4 ? '192.0.2.1' : '100::1'}.`);
}

function invalid(message: string): CodedError {
  return new CodedError('hand_off.invalid', message);
}

/** True for an attack that this rule acts on while it goes on: of an exact address of its prefixes, and no drill. */
export function isFor(
  rule: Pick<Rule, 'siteId' | 'kind' | 'mode' | 'prefixes' | 'direction' | 'minPps' | 'minBps'>,
  incident: Incident,
): boolean {
  const { target, measured, direction } = incident;
  if (rule.siteId !== incident.siteId || rule.mode === 'off' || !isActionable(incident)) return false;
  const main = measured.vectors.find((vector) => vector.class === incident.class);
  const isFilter = rule.kind === 'flowspec' || rule.kind === 'filter';
  if (isFilter && !filterOf(incident.class, main?.details?.protocols)) return false;
  // None of them stops packets that carry other addresses.
  if ((isFilter || rule.kind === 'blackhole') && measured.isSpoofed) return false;
  if (rule.direction !== 'both' && rule.direction !== direction) return false;
  const isStrong =
    (rule.minPps === null && rule.minBps === null) ||
    (rule.minPps !== null && measured.peak.pps >= rule.minPps) ||
    (rule.minBps !== null && measured.peak.bps >= rule.minBps);
  return isStrong && isAllowed(rule.prefixes, target.value);
}

/** Attacks on and by exact addresses; a drill is no attack. */
export function isActionable({ target, severity, isDrill }: Incident): boolean {
  return (
    target.kind === 'host' && severity === 'attack' && !isDrill && canonicalAddress(target.value) !== null
  );
}

/** True for an address in one of these prefixes. */
export function isAllowed(prefixes: readonly string[], address: string): boolean {
  const bytes = parseAddress(address);
  return bytes !== null && prefixes.some((text) => prefixContains(parsePrefix(text)!, bytes));
}
