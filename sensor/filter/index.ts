/**
 * The filter of the running sensor: gives the uplinks' filters the rules of the plan, and tells the detector what they do.
 *
 * A rule drops only where the filter has learned for a minute before the attack who converses; else it counts. When the sensor stops, its
 * filters pass everything at once; when it dies, ten seconds later.
 */
import type { Clock } from '#common/clock/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import type { DroppedCounters } from '#contracts/sensor-api/telemetry.ts';
import type { CaptureSpec } from '#sensor/collection/index.ts';
import type { FilteredSecond } from '#sensor/detector/index.ts';
import { type AttachedFilter, type FilterRule, loadFilter, noCounts } from '#sensor/kernel/index.ts';

const learnsMs = 60_000;
const learnsTooShort =
  'it only counts: when the attack began the filter had not yet learned for a minute who converses';
const readEveryMs = 1000;
/** After the end of a second. */
const readDelayMs = 20;
/** A filter that is attached later is looked for this often. */
const openEveryMs = 60_000;

export interface FilterDeps {
  captures: readonly CaptureSpec[];
  /** SVC_SENSOR_FILTER. */
  isWanted: boolean;
  clock: Clock;
  reporter: Reporter;
  onSecond(capture: string, unixSecond: number, rows: readonly FilteredSecond[]): void;
}

/** The filter of one uplink, for people on this host. */
export interface FilterStatus {
  capture: string;
  rules: number;
  dropsPps: number;
  /** Why nothing can be dropped; null where it can. */
  why: string | null;
}

interface Uplink {
  name: string;
  interfaceName: string;
  attached: AttachedFilter | null;
  why: string;
  /** Why rules only count. */
  problems: Map<FilterRule, string>;
  dropsPps: number;
}

const namedBy = ({ target, direction, class: name }: FilterRule) => ({ target, direction, class: name });

/** What the rules did since the last call. */
function takeRows({ problems }: Uplink, { filter }: AttachedFilter, nowMs: number): FilteredSecond[] {
  return filter.takeCounts().map(({ rule, counts }) => {
    const { dropsAtMs, endsAtMs } = rule;
    const isDropping = dropsAtMs !== null && dropsAtMs <= nowMs && nowMs < endsAtMs;
    return { ...namedBy(rule), counts, isDropping, problem: problems.get(rule) ?? '' };
  });
}

function uplinksOf({ captures, isWanted }: FilterDeps): Uplink[] {
  return captures.flatMap(({ name, role, source }) =>
    role === 'uplink' && source.kind === 'live'
      ? [
          {
            ...{ name, interfaceName: source.interfaceName, attached: null, problems: new Map() },
            ...{ why: isWanted ? 'not started' : 'SVC_SENSOR_FILTER is off', dropsPps: 0 },
          },
        ]
      : [],
  );
}

export type FilterService = ReturnType<typeof createFilterService>;

export function createFilterService(deps: FilterDeps) {
  const { clock, reporter, isWanted } = deps;
  const stopping = new AbortController();
  const uplinks = uplinksOf(deps);
  let rules: readonly FilterRule[] = [];
  let openedAtMs = Number.NEGATIVE_INFINITY;
  let running: Promise<void> = Promise.resolve();

  async function open(one: Uplink): Promise<void> {
    try {
      one.attached = (await loadFilter()).openFilter(one.interfaceName);
      apply(one);
      reporter.info('attacks can be dropped', { capture: one.name });
    } catch (error) {
      fail(one, error);
    }
  }

  function fail(one: Uplink, error: unknown): void {
    const why = describeError(error);
    if (why !== one.why) reporter.warn('attacks can not be dropped', { capture: one.name, why });
    one.why = why;
    one.attached?.filter.close();
    one.attached = null;
  }

  /** Calls the kernel; after an error the filter is opened again. */
  function guarded<T>(one: Uplink, call: (attached: AttachedFilter) => T): T | null {
    if (!one.attached) return null;
    try {
      return call(one.attached);
    } catch (error) {
      fail(one, error);
      return null;
    }
  }

  function apply(one: Uplink): void {
    guarded(one, ({ filter }) => {
      const learnsSinceMs = filter.learnsSinceMs();
      const own = rules.map((rule) => {
        const isTooEarly = rule.beganAtMs < learnsSinceMs + learnsMs;
        return isTooEarly ? { ...rule, dropsAtMs: null } : rule;
      });
      one.problems = new Map(
        own.filter((rule) => !rules.includes(rule)).map((rule) => [rule, learnsTooShort]),
      );
      filter.beat();
      for (const { target } of filter.setRules(own))
        reporter.warn('the filter has no room for more rules', { capture: one.name, target });
    });
  }

  function read(one: Uplink, unixSecond: number): void {
    guarded(one, (attached) => {
      if (!attached.isAttached())
        throw new CodedError('kernel.not_attached', 'the filter was taken off, or the interface is new');
      attached.filter.beat();
      const rows = takeRows(one, attached, clock.nowMs());
      one.dropsPps = rows.reduce((sum, { counts }) => sum + counts.dropped.packets, 0);
      deps.onSecond(one.name, unixSecond, rows);
    });
    // What can't be filtered is told with the incident.
    if (!one.attached && rules.length > 0)
      deps.onSecond(
        one.name,
        unixSecond,
        rules.map((rule) => ({ ...namedBy(rule), counts: noCounts, isDropping: false, problem: one.why })),
      );
  }

  async function openAll(): Promise<void> {
    if (!isWanted || clock.monotonicMs() - openedAtMs < openEveryMs) return;
    openedAtMs = clock.monotonicMs();
    await Promise.all(uplinks.filter(({ attached }) => attached === null).map(open));
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      await openAll();
      const second = Math.floor(clock.nowMs() / readEveryMs);
      await clock.wait((second + 1) * readEveryMs + readDelayMs - clock.nowMs(), stopping.signal);
      if (!stopping.signal.aborted) for (const one of uplinks) read(one, second);
    }
  }

  return {
    name: 'filter',
    async start(): Promise<void> {
      // Before the first minutes are committed, with what was dropped in them.
      await openAll();
      running = run();
    },
    async stop(): Promise<void> {
      stopping.abort();
      await running;
      for (const one of uplinks)
        guarded(one, ({ filter }) => {
          filter.setRules([]);
          filter.close();
        });
    },
    /** Works by these rules from now on; null: the monitor knows no filter. */
    follow(next: readonly FilterRule[] | null): void {
      rules = next ?? [];
      for (const one of uplinks) apply(one);
    },
    /** What was dropped at a capture in a minute (seconds since 1970) of the last four, by address; the same over restarts. */
    dropped(capture: string, minute: number): ReadonlyMap<string, DroppedCounters> {
      const one = uplinks.find(({ name }) => name === capture);
      return (one && guarded(one, ({ filter }) => filter.readDropped(minute))) ?? new Map();
    },
    /** True where an uplink can drop. */
    isReady: () => uplinks.some(({ attached }) => attached !== null),
    status: (): FilterStatus[] =>
      uplinks.map(({ name: capture, attached, dropsPps, why }) => ({
        ...{ capture, rules: rules.length, dropsPps, why: attached ? null : why },
      })),
  } satisfies Part & Record<string, unknown>;
}
