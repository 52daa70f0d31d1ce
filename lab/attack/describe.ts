/** Sentences about an attack for the terminal. */
import type { AttackOrder } from './attack-order.ts';
import type { FloodProgress } from './flood.ts';

const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });

/** `12 s: 300,000 packets, 25,000/s`. */
export function describeProgress(order: AttackOrder, progress: FloodProgress): string {
  const seconds = Math.round(progress.elapsedMs / 1000);
  return `${seconds} s: ${grouped.format(progress.sent)} ${unitOf(order)}, ${perSecond(progress)}/s`;
}

/** `sent 1,497,320 packets in 60.0 s, 24,955/s asked 25,000/s`. */
export function describeResult(
  order: AttackOrder,
  result: FloodProgress & { answered: number | null },
): string {
  const verb = unitOf(order) === 'connections' ? 'opened' : 'sent';
  const seconds = (result.elapsedMs / 1000).toFixed(1);
  const answered = result.answered === null ? '' : `; ${grouped.format(result.answered)} were accepted`;
  const rate = `${perSecond(result)}/s asked ${grouped.format(order.perSecond)}/s`;
  return `${verb} ${grouped.format(result.sent)} ${unitOf(order)} in ${seconds} s, ${rate}${answered}`;
}

function unitOf(order: AttackOrder): string {
  return order.attackClass === 'connection_flood' ? 'connections' : 'packets';
}

function perSecond({ sent, elapsedMs }: FloodProgress): string {
  return grouped.format(elapsedMs > 0 ? (sent * 1000) / elapsedMs : 0);
}
