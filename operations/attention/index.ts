/**
 * What operators have to look at now: items on the overview, of which those that affect customers already are mailed to operators
 * as well. Attacks are not: the monitor alerts of them, and customers are mailed.
 *
 * An item is mailed once it has lasted for a minute, and once more when it has been gone for a minute. Any number of processes may
 * run the loop. Mails are sent before they are recorded, so a process that dies in between sends one again.
 */
import type { FeatureWork } from '#service-kit/jobs/index.ts';
import { type AlertDeps, createAlertLoop } from './mail-alerts.ts';

export { describeItem } from './describe-item.ts';
export { type AttentionFacts, type AttentionItem, findAttentionItems, notCounted } from './item.ts';
export { type ReadFactsDeps, readAttentionFacts } from './read-facts.ts';

/** The feature's work; pages read the facts themselves. */
export function createAttention(deps: AlertDeps): { work: FeatureWork } {
  return { work: { parts: createAlertLoop(deps) } };
}
