/** What an admin project delivers: its sites as sources of minute telemetry, those that are refused, minutes set aside. */
import type { AdminProject } from '#operations/admin-projects/index.ts';
import type { ProjectSources } from '#operations/protect/index.ts';
import type { ConflictRow, SetAsideRow, SourceRow } from '#operations/views/index.ts';
import {
  actionButton,
  age,
  type Content,
  code,
  drawer,
  formatCount,
  type Html,
  html,
  moment,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { Staff } from '../guard.ts';

interface SourcesOptions {
  staff: Staff;
  project: AdminProject;
  traffic: ProjectSources;
  nowMs: number;
}

/** Nothing for a project that delivers no minutes. */
export function sourcesSection(options: SourcesOptions): Content {
  const { sources, conflicts, setAside } = options.traffic;
  if (sources.length + conflicts.length + setAside.length === 0) return false;
  return section(
    {
      title: 'Traffic sources',
      description:
        'Each assigned address has one source: a site of a project. Another source takes over after 15 minutes without a delivery, or when an operator transfers the address.',
    },
    [
      sourcesTable(options),
      conflicts.length > 0 && conflictsTable(options),
      setAside.length > 0 && setAsideTable(options),
    ],
  );
}

function sourcesTable({ traffic, nowMs }: SourcesOptions): Html {
  return table<SourceRow>({
    caption: 'Sources of this project',
    card: { line: ['addresses', 'seen'] },
    columns: [
      { key: 'site', header: 'Monitor site', cell: ({ siteId }) => String(siteId) },
      { key: 'addresses', header: 'Addresses', kind: 'figure', cell: (row) => formatCount(row.generations) },
      {
        key: 'seen',
        header: 'Last delivery',
        kind: 'figure',
        cell: ({ seenAt }) => age(seenAt.getTime(), nowMs),
      },
      {
        key: 'taken',
        header: 'Took over',
        cell: ({ takenOverAt }) => (takenOverAt ? moment(takenOverAt.getTime(), nowMs) : ''),
      },
    ],
    rows: traffic.sources,
    empty: { title: 'No sources', text: 'This project owns no address.' },
  });
}

function conflictsTable({ traffic, staff, project, nowMs }: SourcesOptions): Html {
  const ownerOf = (row: ConflictRow) =>
    `site ${row.ownerSiteId} of ${row.ownerProjectName ?? 'an unknown project'}`;
  return table<ConflictRow>({
    caption: 'Refused: another source owns these addresses',
    card: { line: ['owner', 'seen'] },
    columns: [
      { key: 'site', header: 'Monitor site', cell: ({ siteId }) => String(siteId) },
      { key: 'addresses', header: 'Addresses', kind: 'figure', cell: (row) => formatCount(row.generations) },
      { key: 'owner', header: 'Owner', cell: ownerOf },
      {
        key: 'seen',
        header: 'Owner delivered',
        kind: 'figure',
        cell: (row) => age(row.ownerSeenAt.getTime(), nowMs),
      },
      {
        key: 'refused',
        header: 'Last refused',
        kind: 'figure',
        cell: (row) => age(row.refusedAt.getTime(), nowMs),
      },
      {
        key: 'hand-over',
        header: '',
        kind: 'actions',
        cell: (row) =>
          staff.canChange &&
          drawer(
            {
              id: `hand-over-${row.siteId}-${row.ownerProjectId ?? 0}-${row.ownerSiteId}`,
              open: 'Hand over',
              title: 'Hand over these addresses?',
            },
            [
              html`<p>Minutes of ${formatCount(row.generations)} addresses are taken from site ${row.siteId} of this project
                from now on, and refused from ${ownerOf(row)}. Stored minutes stay.</p>`,
              actionButton({
                action: `/console/projects/${project.id}/sources`,
                csrfToken: staff.csrfToken,
                label: 'Hand over',
                kind: 'danger',
                fields: {
                  site_id: String(row.siteId),
                  owner_site_id: String(row.ownerSiteId),
                  owner_project_id: row.ownerProjectId === null ? '' : String(row.ownerProjectId),
                },
              }),
            ],
          ),
      },
    ],
    rows: traffic.conflicts,
    empty: { title: 'No conflicts', text: '' },
  });
}

const reasons: Readonly<Record<string, string>> = {
  rate_implausible: 'A rate above 400 Gbit/s',
  bytes_implausible: 'An application with more bytes than 400 Gbit/s carry',
};

function setAsideTable({ traffic, nowMs }: SourcesOptions): Html {
  return table<SetAsideRow>({
    caption: 'Minutes set aside: not stored, because no link carries what they say',
    card: { line: ['minute', 'site', 'reason'] },
    columns: [
      { key: 'address', header: 'Address', kind: 'code', cell: ({ address }) => code(address) },
      { key: 'minute', header: 'Minute', cell: ({ minute }) => moment(minute.getTime(), nowMs) },
      { key: 'site', header: 'Monitor site', cell: ({ siteId }) => String(siteId) },
      { key: 'reason', header: 'Reason', cell: ({ reason }) => reasons[reason] ?? reason },
    ],
    rows: traffic.setAside,
    empty: { title: 'None', text: '' },
  });
}
