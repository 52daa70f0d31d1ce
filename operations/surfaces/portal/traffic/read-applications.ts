/** The applications of a traffic view: filtered, added up, and as lines of the chart. */
import type { Actor } from '#operations/accounts/index.ts';
import {
  type ApplicationUse,
  bytesOf,
  type ExploredSeries,
  type IdentityStep,
  type IdentityUse,
  namesApplications,
  type ProtectTraffic,
  passesIdentity,
  type Rank,
  rankIdentities,
  seriesOfIdentities,
  serviceOf,
  type UsageStep,
  type UsageSubject,
} from '#operations/protect/index.ts';
import { type Dimension, type Filter, type Sides, sidesOf } from '#service-kit/explorer/index.ts';
import type { ChartData, ChartSeries, Range } from '#service-kit/pages/index.ts';
import { linesChartData, linesMax } from './explored-chart.ts';
import type { ApplicationRank } from './rank-tables.ts';

export interface ApplicationView {
  applications: ApplicationRank[];
  ports: Rank[];
  /** Names alone, most bytes first. */
  names: Rank[];
  /** What passes the filters, by server and service. */
  rows: IdentityUse[];
  use: ApplicationUse;
  /** True when the range begins before applications are known. */
  isShorter: boolean;
}

/** `isPreviousObserved`: whether there was any observation in the time before. */
export async function readApplications(
  traffic: Pick<ProtectTraffic, 'readApplicationUse'>,
  actor: Actor,
  subject: UsageSubject,
  view: {
    range: Pick<Range, 'fromMs' | 'toMs'>;
    filters: readonly Filter[];
    isPreviousObserved: boolean;
  },
): Promise<ApplicationView> {
  const use = await traffic.readApplicationUse(actor, subject, view.range);
  const directions = sidesOf(view.filters);
  const counted = (row: IdentityUse) =>
    (directions.in ? row.inboundBytes : 0) + (directions.out ? row.outboundBytes : 0);
  const allBytes = use.identities.reduce((sum, row) => sum + counted(row), 0);
  const rows = use.identities
    .filter((row) => counted(row) > 0 && passesIdentity(view.filters, row))
    .sort((a, b) => counted(b) - counted(a) || a.name.localeCompare(b.name));
  const isPreviousKnown = use.isPreviousShown && view.isPreviousObserved;
  const rank = (nameOf: (row: IdentityUse) => string) =>
    rankIdentities(rows, nameOf, { allBytes, isPreviousKnown, directions });
  const byService = new Map(rows.map((row) => [keyOf(row), row]));
  return {
    rows,
    use,
    isShorter: use.fromMs > view.range.fromMs,
    names: rank((row) => row.name),
    ports: rank(serviceOf),
    applications: rank(keyOf).map((each) => {
      const row = byService.get(each.value)!;
      return { ...each, name: row.name, service: serviceOf(row), hasPort: row.serverPort !== null };
    }),
  };
}

interface Identity {
  name: string;
  transport: string | null;
  serverPort: number | null;
}

const keyOf = ({ name, transport, serverPort }: Identity) => JSON.stringify([name, transport, serverPort]);

interface LinesView {
  range: Range;
  filters: readonly Filter[];
  by: Dimension | null;
  observed: readonly UsageStep[];
  found: ApplicationView;
  serverName: (serverId: number) => string;
}

/** The chart of a view that needs applications: a line for each of the largest values, or in and out of all that passes. */
export async function readApplicationChart(
  traffic: Pick<ProtectTraffic, 'readApplicationSteps'>,
  actor: Actor,
  subject: UsageSubject,
  view: LinesView,
): Promise<ChartData> {
  const steps = await traffic.readApplicationSteps(actor, subject, view.range);
  const times = view.observed.map((step) => step.at);
  const directions = sidesOf(view.filters);
  if (view.by !== null) return linesChartData(times, linesOf(steps, view, view.by, directions), view.range);
  const only = (direction: 'in' | 'out'): ChartSeries[] => {
    if (!directions[direction]) return [];
    const [line] = linesOf(steps, view, 'all', { in: direction === 'in', out: direction === 'out' });
    const values = line?.rates ?? times.map(() => null);
    return [{ label: direction === 'in' ? 'In' : 'Out', role: direction, values }];
  };
  return {
    ...linesChartData(times, [], view.range),
    shape: 'lines',
    series: [...only('in'), ...only('out')],
  };
}

function linesOf(
  steps: readonly IdentityStep[],
  { filters, found, range, observed, serverName }: LinesView,
  by: Dimension | 'all',
  directions: Sides,
): ExploredSeries[] {
  const shown = new Set(found.rows.map((row) => `${row.serverId} ${keyOf(row)}`));
  const nameOf = (of: Identity & { serverId: number }) => {
    if (by === 'application') return of.name;
    return by === 'port' ? serviceOf(of) : by === 'server' ? serverName(of.serverId) : 'all';
  };
  return seriesOfIdentities(steps, observed, {
    values: valuesOf(found, by, nameOf),
    top: linesMax,
    // Applications that may not be shown belong to the rest.
    valueOf: (step) => (shown.has(`${step.serverId} ${keyOf(step)}`) ? nameOf(step) : null),
    directions,
    // Without a filter for applications the lines and the rest are the whole traffic.
    hasUnnamed: !namesApplications(filters) && by !== 'all',
    sinceMs: found.isShorter ? found.use.fromMs : range.fromMs,
  });
}

function valuesOf(
  found: ApplicationView,
  by: Dimension | 'all',
  nameOf: (row: IdentityUse) => string,
): string[] {
  if (by === 'all') return ['all'];
  if (by === 'application') return found.names.map(({ value }) => value);
  return by === 'port' ? found.ports.map(({ value }) => value) : byBytes(found.rows, nameOf);
}

function byBytes(rows: readonly IdentityUse[], nameOf: (row: IdentityUse) => string): string[] {
  return [...Map.groupBy(rows, nameOf)]
    .map(([value, of]) => ({ value, bytes: of.reduce((sum, row) => sum + bytesOf(row), 0) }))
    .sort((a, b) => b.bytes - a.bytes)
    .map(({ value }) => value);
}
