/** The last 24 hours of each row of a list, hour by hour, as a small picture. */
import type { Actor } from '#operations/accounts/index.ts';
import type { ProtectTraffic, UsageStep } from '#operations/protect/index.ts';
import { type Content, spark } from '#service-kit/pages/index.ts';

export interface DaySteps {
  /** By the id of the server or the tenant. */
  steps: ReadonlyMap<number, readonly UsageStep[]>;
  /** Starts of the hours. */
  times: readonly number[];
}

const hourMs = 3_600_000;
const hoursShown = 24;

/** Whole hours, the present one with them. */
export function dayOf(nowMs: number): { fromMs: number; toMs: number } {
  const toMs = Math.ceil(nowMs / hourMs) * hourMs;
  return { fromMs: toMs - hoursShown * hourMs, toMs };
}

export async function readDaySteps(
  traffic: Pick<ProtectTraffic, 'readServerSteps'>,
  actor: Actor,
  subject: Parameters<ProtectTraffic['readServerSteps']>[1],
  of: 'server' | 'tenant',
  nowMs: number,
): Promise<DaySteps> {
  const { fromMs, toMs } = dayOf(nowMs);
  const query = { fromMs, toMs, stepSeconds: hourMs / 1000 };
  return {
    steps: await traffic.readServerSteps(actor, subject, query, of),
    times: Array.from({ length: hoursShown }, (_, index) => fromMs + index * hourMs),
  };
}

/** Nothing where nothing was observed. */
export function daySpark({ steps, times }: DaySteps, id: number): Content {
  const byTime = new Map(steps.get(id)?.map((step) => [step.at.getTime(), step]));
  if (byTime.size === 0) return '';
  const values = (key: 'inboundBps' | 'outboundBps') => times.map((ms) => byTime.get(ms)?.[key] ?? null);
  return spark({ in: values('inboundBps'), out: values('outboundBps') }, 'In and out over the last 24 hours');
}
