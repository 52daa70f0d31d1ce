/** One attempt at a step of an action: a call of a webhook, a run of a command, or what a dry run would have done. */
import { describeError } from '#common/errors/index.ts';
import { filterOf } from '#contracts/attack-classes.ts';
import { postDelivery, resolveByDns, signDelivery } from '#service-kit/webhooks/index.ts';
import { type Action, describeStep, directionWord, type Step } from './action.ts';
import type { HandOffDeps } from './index.ts';
import { readSealedSecret, ruleSecret } from './rules-store.ts';
import { runCommand } from './run-command.ts';

export interface StepResult {
  error: string | null;
  /** False: it is certain that nothing happened, and trying again changes nothing. */
  mayHaveActed: boolean;
  output: string;
  /** Tries go on as long as the attack does: the fault is not of this action. */
  isOutage?: boolean;
}

/** Never throws. */
export async function carryOut(
  deps: HandOffDeps,
  action: Action,
  step: Step,
  nowMs: number,
  signal: AbortSignal,
): Promise<StepResult> {
  if (action.isDryRun)
    return { error: null, mayHaveActed: false, output: `Dry run. Would ${describeTarget(action, step)}.` };
  if (action.kind === 'webhook') return post(deps, action, step, nowMs, signal);
  // What is active is in the plans of the site's sensors; nothing is to be called.
  if (action.kind === 'filter')
    return {
      error: null,
      mayHaveActed: true,
      output: `${step === 'ban' ? 'Began' : 'Ended'} ${describeRoutes(action)}.`,
    };
  const { error, wasStarted, output } = await runCommand(
    deps.commandsFolder,
    action.target.command ?? '',
    argumentsOf(action, step),
    describeStep(action, step),
    deps,
  );
  return { error, mayHaveActed: wasStarted, output };
}

/** FastNetMon's arguments: address, direction, packets a second, `ban` or `unban`. */
const argumentsOf = ({ address, attack }: Action, step: Step) => [
  address,
  directionWord(attack.direction),
  String(attack.pps),
  step,
];

function describeTarget(action: Action, step: Step): string {
  if (action.kind === 'filter')
    return `${step === 'ban' ? 'drop' : 'stop dropping'} by ${describeRoutes(action)}; it only counts`;
  if (action.kind === 'webhook') return `post ${step} of ${action.address} to ${action.target.url}`;
  if (action.kind !== 'command')
    return `${step === 'ban' ? 'announce' : 'withdraw'} ${describeRoutes(action)}`;
  return `run ${[action.target.command, ...argumentsOf(action, step)].join(' ')}`;
}

/** The routes of an action, in words. */
export function describeRoutes({ kind, address, target, attack }: Action): string {
  const subject = `${address}/${address.includes(':') ? 128 : 32}`;
  if (kind === 'blackhole')
    return `a blackhole of ${subject} by ${(address.includes(':') ? target.nextHop6 : target.nextHop4) ?? 'no next hop'} at ${target.peer}`;
  const vectors = attack.vectors.filter((vector) => filterOf(vector.class, vector.protocols));
  const names = vectors.length > 0 ? [...new Set(vectors.map((vector) => vector.class))] : [attack.class];
  const place = kind === 'filter' ? 'the uplinks of its hypervisors' : target.peer;
  return `filters of ${names.join(', ')} for ${subject} at ${place}`;
}

async function post(
  deps: HandOffDeps,
  action: Action,
  step: Step,
  nowMs: number,
  signal: AbortSignal,
): Promise<StepResult> {
  const failed = (error: string) => ({ error, mayHaveActed: true, output: '' });
  const timestamp = new Date(nowMs).toISOString();
  const body = JSON.stringify({ type: `hand_off.${step}`, timestamp, data: describeStep(action, step) });
  let secret: Buffer;
  try {
    const sealed = await readSealedSecret(deps.db(), action.ruleId);
    secret = await deps.secrets.open(deps.db(), ruleSecret, action.ruleId, sealed);
  } catch (error) {
    deps.reporter.error('a hand-off can not be signed', {
      rule: action.ruleName,
      error: describeError(error),
    });
    return failed('the signing secret can not be decrypted; remove the rule and add it again');
  }
  const id = `${action.publicId}.${step}`;
  const headers = signDelivery([secret], id, Math.floor(nowMs / 1000), body);
  const options = { rules: deps.webhooks, resolve: resolveByDns, signal };
  const { error } = await postDelivery(action.target.url ?? '', { headers, body }, options);
  return error === null ? { error, mayHaveActed: true, output: 'The receiver accepted it.' } : failed(error);
}
