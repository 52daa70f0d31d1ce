import type { HeldBack } from '#monitor/feeds/index.ts';
import { isSilentFor } from '#monitor/sensors/index.ts';
import { judgeSystem, measuredOfSystem, systemKindNames } from '#service-kit/system/index.ts';
import type { HealthReport } from './report.ts';

const minute = 60;
/** Uploads normally wait less than a second. */
const oldestSecondsMax = minute;
/** Retention runs every hour. */
const maintenanceMsMax = 2 * 3_600_000;

/** Problems that need attention, one sentence each. */
export function findProblems(report: Omit<HealthReport, 'problems'>): string[] {
  const { inbox, feeds, maintenance, sensors, system, asOfMs } = report;
  const problems: string[] = [];
  if (system.writeProblem !== null) problems.push(`The database ${system.writeProblem}.`);
  // What feeds and retention say of themselves.
  const said = new Set<unknown>([maintenance.lastError, ...feeds.map(({ lastError }) => lastError)]);
  for (const { kind, name, verdict, details } of judgeSystem(system))
    if (verdict === 'bad' && !(typeof details.error === 'string' && said.has(details.error)))
      problems.push(`${systemKindNames[kind]}: ${name}: ${measuredOfSystem(kind, details)}.`);
  const uploads = (count: number) => (count === 1 ? '1 upload' : `${count} uploads`);
  if ((inbox.oldestSeconds ?? 0) > oldestSecondsMax)
    problems.push(
      `Waiting to be applied: ${uploads(inbox.pending)}, the oldest for ${Math.round(inbox.oldestSeconds!)} seconds.`,
    );
  if (inbox.failing > 0) problems.push(`Failed and retried: ${uploads(inbox.failing)}.`);
  if (inbox.rejectedLastHour > 0)
    problems.push(`Given up in the last hour: ${uploads(inbox.rejectedLastHour)}; the events say why.`);
  for (const { title, lastError } of feeds) if (lastError !== null) problems.push(`${title}: ${lastError}`);
  if (maintenance.lastError !== null) problems.push(`Retention failed: ${maintenance.lastError}`);
  else if (maintenance.lastSuccessAtMs !== null && asOfMs - maintenance.lastSuccessAtMs > maintenanceMsMax)
    problems.push('Retention has not run for more than two hours.');
  const silent = sensors.filter(({ silentSeconds }) => isSilentFor(silentSeconds));
  if (silent.length > 0)
    problems.push(
      silent.length === 1
        ? `The sensor on ${silent[0]!.hostName} is silent.`
        : `${silent.length} of ${sensors.length} sensors are silent.`,
    );
  return problems;
}

/** Feeds go on beside what they can't deliver, so they have no error of their own. Visits of records that were long ago stay out. */
export function describeHeldBack(
  heldBack: readonly HeldBack[],
  { feeds, asOfMs }: Pick<HealthReport, 'feeds' | 'asOfMs'>,
): string[] {
  const recent = heldBack.filter(({ visitedAtMs }) => asOfMs - visitedAtMs < 15 * minute * 1000);
  return feeds.flatMap(({ feed, title }) => {
    const [first, ...others] = recent.filter((one) => one.feed === feed);
    if (!first) return [];
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    return [`${title}: ${first.item}${more} not delivered in full; the page Operations says why.`];
  });
}
