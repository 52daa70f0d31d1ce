import type {
  Direction,
  Exploration,
  ExploredAmount,
  ExploredFilter,
  FactStore,
  SiteRange,
  ViewRange,
} from '#monitor/facts/index.ts';

/** The console's views (NET-2.2.1); the first is the default. */
export const applicationViews = {
  outbound: { label: 'Internet / Outbound', direction: 'outbound' },
  inbound: { label: 'Inbound', direction: 'inbound' },
  internal: { label: 'LAN / Internal', direction: 'internal' },
  all: { label: 'All', direction: null },
} as const satisfies Record<string, { label: string; direction: Direction | null }>;

export type ApplicationView = keyof typeof applicationViews;

/** A view's range in the form of the facts. */
export function viewRange(siteId: number, view: ApplicationView, fromMs: number, toMs: number): ViewRange {
  const range: SiteRange = { siteId, fromMinute: fromMs / 1000, toMinute: toMs / 1000 };
  return { ...range, direction: applicationViews[view].direction };
}

export interface ApplicationStep {
  timeMs: number;
  /** Null: all that are not among the names asked for. */
  name: string | null;
  bytes: number;
}

export interface StepsRange {
  siteId: number;
  view: ApplicationView;
  fromMs: number;
  toMs: number;
  stepSeconds: number;
  names: readonly string[];
}

export async function listSteps(
  facts: Pick<FactStore, 'explore'>,
  { siteId, view, fromMs, toMs, stepSeconds, names }: StepsRange,
): Promise<ApplicationStep[]> {
  const { direction, ...range } = viewRange(siteId, view, fromMs, toMs);
  const ofView: ExploredFilter[] =
    direction === null ? [] : [{ dimension: 'direction', is: true, values: [direction] }];
  const asked: Exploration = {
    ...{ ...range, source: 'applications', filters: ofView, owners: [], networks: [], measure: 'bytes' },
    ...{ by: [], stepSeconds, order: 'size', rows: { limit: names.length } },
  };
  const filters: ExploredFilter[] = [...ofView, { dimension: 'application', is: true, values: names }];
  const [all, named] = await Promise.all([
    facts.explore(asked),
    facts.explore({ ...asked, by: ['application'], filters }),
  ]);
  const bytesOf = (one: ExploredAmount) => one.inBytes + one.outBytes;
  const left = new Map(all.steps.map((step) => [step.timeMs, bytesOf(step)]));
  const steps = named.steps.flatMap(({ row, timeMs, ...amount }): ApplicationStep[] => {
    if (row === null) return [];
    const bytes = bytesOf(amount);
    left.set(timeMs, left.get(timeMs)! - bytes);
    return [{ timeMs, name: named.rows[row]!.key[0]!, bytes }];
  });
  const rest = [...left].map(([timeMs, bytes]): ApplicationStep => ({ timeMs, name: null, bytes }));
  return [...steps, ...rest].filter(({ bytes }) => bytes > 0);
}
