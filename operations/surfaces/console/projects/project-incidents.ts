/** What became of the incidents that an admin project delivered: those that were not applied, and why. */
import { titleOfClass } from '#contracts/attack-classes.ts';
import type { ProjectOutcomes, RefusalRow } from '#operations/protect/index.ts';
import {
  age,
  type Content,
  code,
  formatCount,
  type Html,
  section,
  stat,
  stats,
  table,
} from '#service-kit/pages/index.ts';

interface IncidentsOptions {
  incidents: ProjectOutcomes;
  nowMs: number;
}

/** Nothing for a project that delivers no incidents. */
export function incidentsSection(options: IncidentsOptions): Content {
  const { counts, refusals } = options.incidents;
  if (Object.values(counts).every((count) => count === 0)) return false;
  return section(
    {
      title: 'Incidents',
      id: 'incidents',
      description: 'Outcomes of the last seven days, each incident once.',
    },
    [
      stats(
        stat({ label: 'Applied', value: formatCount(counts.applied) }),
        stat({
          label: 'Unmatched',
          value: formatCount(counts.unmatched),
          source: 'no server had the address',
        }),
        stat({
          label: 'Identity conflicts',
          value: formatCount(counts.identity_conflict),
          source: 'bound to another server, target or source',
        }),
        stat({ label: 'Terminal', value: formatCount(counts.terminal), source: 'the server is destroyed' }),
      ),
      refusals.length > 0 && refusalsTable(options),
    ],
  );
}

const outcomeTexts = {
  unmatched: 'unmatched',
  identity_conflict: 'identity conflict',
  terminal: 'terminal',
} as const;

function refusalsTable({ incidents, nowMs }: IncidentsOptions): Html {
  return table<RefusalRow>({
    caption: 'Incidents that were not applied',
    card: { line: ['kind', 'outcome', 'at'] },
    columns: [
      { key: 'target', header: 'Target', kind: 'code', cell: (row) => code(row.target) },
      { key: 'kind', header: 'Kind', cell: (row) => row.targetKind },
      { key: 'class', header: 'Class', cell: (row) => titleOfClass(row.class) },
      { key: 'outcome', header: 'Outcome', cell: (row) => outcomeTexts[row.outcome] },
      { key: 'site', header: 'Monitor site', cell: (row) => String(row.siteId) },
      {
        key: 'at',
        header: 'Last delivered',
        kind: 'figure',
        cell: (row) => age(row.refusedAt.getTime(), nowMs),
      },
      { key: 'id', header: 'Incident', kind: 'code', cell: (row) => code(row.incidentId) },
    ],
    rows: incidents.refusals,
    empty: { title: 'None', text: '' },
  });
}
