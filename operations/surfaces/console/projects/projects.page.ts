import type { AdminProject } from '#operations/admin-projects/index.ts';
import type { Cluster } from '#operations/clusters/index.ts';
import type { GrantablePermission } from '#operations/feeds/index.ts';
import {
  type Content,
  cellColumn,
  code,
  field,
  form,
  type Html,
  hiddenField,
  html,
  pageHeader,
  section,
  table,
} from '#service-kit/pages/index.ts';
import { linkColumn, timeColumn } from '#service-kit/web/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

export interface ProjectsPageOptions {
  staff: Staff;
  projects: readonly AdminProject[];
  clusters: readonly Cluster[];
  grantable: readonly GrantablePermission[];
  /** What a refused form held. */
  name?: string;
  error?: string;
}

export function projectsPage(options: ProjectsPageOptions): Html {
  const { staff, projects, clusters } = options;
  const count = projects.length;
  return consoleFrame(
    { staff, title: 'Admin projects', current: 'projects', breadcrumb: [{ label: 'Admin projects' }] },
    [
      pageHeader({
        title: 'Admin projects',
        state: {
          tone: 'neutral',
          text: `${count === 0 ? 'No program' : count === 1 ? 'One program' : `${count} programs`} may use the admin API.`,
        },
      }),
      table<AdminProject>({
        caption: 'Admin projects',
        card: { line: ['permissions', 'clusters'] },
        columns: [
          linkColumn('name', 'Name', (project) => [project.name, `/console/projects/${project.id}`]),
          {
            key: 'permissions',
            header: 'Permissions',
            kind: 'prose',
            cell: (project) => project.permissions.map((name, index) => [index > 0 && ' ', code(name)]),
          },
          cellColumn('clusters', 'Clusters', (project) => namesOfClusters(project, clusters)),
          timeColumn('created', 'Created', (project) => project.createdAt.getTime()),
        ],
        rows: projects,
        empty: {
          title: 'No projects yet',
          text: 'The monitor needs one: create it, issue a token, and paste the token into the monitor’s settings.',
        },
      }),
      staff.canChange && createSection(options),
    ],
  );
}

/** In words: an id says nothing to a person. */
export function namesOfClusters(project: AdminProject, clusters: readonly Cluster[]): string {
  if (project.clusterIds === null) return 'all';
  const names = new Map(clusters.map((cluster) => [cluster.id, cluster.name]));
  return project.clusterIds.map((id) => names.get(id) ?? `${id}, which does not exist`).join(', ');
}

function createSection({ staff, error, name, clusters, grantable }: ProjectsPageOptions): Html {
  return section(
    { title: 'Create a project' },
    form({ action: '/console/projects/', csrfToken: staff.csrfToken, submit: 'Create project', error }, [
      field({ name: 'name', label: 'Name', required: true, maxLength: 120, value: name ?? '' }),
      projectFields(
        { permissions: grantable.map(({ permission }) => permission), clusterIds: null },
        clusters,
        grantable,
      ),
    ]),
  );
}

/** Permissions and clusters, as both forms ask for them. */
export function projectFields(
  project: { permissions: readonly string[]; clusterIds: readonly number[] | null },
  clusters: readonly Cluster[],
  grantable: readonly GrantablePermission[],
): Content {
  const known = clusters.map((cluster) => `${cluster.id} is ${cluster.name}`).join(', ');
  const boxes = grantable.map(
    ({ permission: name, hint }) =>
      html`<div class="field field-checkbox"><input type="checkbox" id="permission-${name}" name="permissions" value="${name}"${project.permissions.includes(name) ? html` checked` : ''}><div><label for="permission-${name}">${code(name)}</label><p class="hint">${hint}</p></div></div>`,
  );
  // What this page has no box for is kept, so that saving a name takes no permission away.
  const others = project.permissions.filter(
    (name) => !grantable.some(({ permission }) => permission === name),
  );
  return [
    boxes,
    others.map((name) => hiddenField('permissions', name)),
    field({
      name: 'clusters',
      label: 'Clusters',
      hint: `Ids, separated by commas; empty: all clusters.${known === '' ? '' : ` ${known}.`}`,
      isCode: true,
      value: project.clusterIds?.join(', ') ?? '',
    }),
  ];
}
