/** Rules of hand-off: what operators write, and which attacks a rule is for. */
import { CodedError } from '#common/errors/index.ts';
import { canonicalAddress, parseAddress, parsePrefix, prefixContains } from '#common/ip/index.ts';
import type { Incident } from '#monitor/incidents/index.ts';
import { parsePrefixes, parseRate } from '#monitor/protection/index.ts';
import { parseEndpointUrl, type TargetRules } from '#service-kit/webhooks/index.ts';

export const ruleKinds = ['webhook', 'command'] as const;
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
}

/** What this installation allows. */
export interface HandOffRules {
  webhooks: TargetRules;
  /** Names of the programs that rules may start. */
  commands: readonly string[];
}

export const ruleNameMax = 80;
export const rulesMax = 50;
export const prefixesMax = 256;
export const holdSecondsMin = 60;
export const holdSecondsMax = 86_400;
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
  const name = input.name.trim();
  if (name === '' || name.length > ruleNameMax)
    fields.name = `A rule's name has 1 to ${ruleNameMax} characters.`;
  const kind = ruleKinds.find((known) => known === input.kind) ?? null;
  if (!kind) fields.kind = `The kind is one of ${ruleKinds.join(', ')}.`;
  const bounds = { field: 'prefixes', atLeast: 1, atMost: prefixesMax, what: 'The list of allowed prefixes' };
  const prefixes = caught('prefixes', () => parsePrefixes(input.prefixes, bounds)) ?? [];
  const direction = ruleDirections.find((known) => known === input.direction);
  if (!direction) fields.direction = 'The direction is inbound, outbound or both.';
  const holdSeconds = /^\d{1,6}$/.test(input.holdSeconds.trim()) ? Number(input.holdSeconds) : 0;
  if (holdSeconds < holdSecondsMin || holdSeconds > holdSecondsMax)
    fields.hold_seconds = `The hold time is ${holdSecondsMin} to ${holdSecondsMax} whole seconds.`;
  const minPps = caught('min_pps', () => parsePeak(input.minPps));
  const minBps = caught('min_bps', () => parsePeak(input.minBps));
  const target = kind ? parseTarget(kind, input, allowed, caught) : {};
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

function parseTarget(kind: RuleKind, input: RuleInput, allowed: HandOffRules, caught: Caught): RuleTarget {
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

function invalid(message: string): CodedError {
  return new CodedError('hand_off.invalid', message);
}

/** True for an attack that this rule acts on while it goes on: of an exact address of its prefixes, and no drill. */
export function isFor(
  rule: Pick<Rule, 'siteId' | 'mode' | 'prefixes' | 'direction' | 'minPps' | 'minBps'>,
  incident: Incident,
): boolean {
  const { target, measured, direction } = incident;
  if (rule.siteId !== incident.siteId || rule.mode === 'off' || !isActionable(incident)) return false;
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
