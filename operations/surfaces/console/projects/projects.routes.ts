import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import { titleOfClass } from '#contracts/attack-classes.ts';
import type { AdminProject, AdminToken } from '#operations/admin-projects/index.ts';
import type { Cluster } from '#operations/clusters/index.ts';
import type { Features } from '#operations/features.ts';
import { type GrantablePermission, listGrantable } from '#operations/feeds/index.ts';
import type { ProjectOutcomes, ProjectSources, RefusalRow } from '#operations/protect/index.ts';
import type { ConflictRow, SetAsideRow, SourceRow } from '#operations/views/protect-source-store.ts';
import { defaultDays, expiryOf } from '#service-kit/credentials/index.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionButton,
  actionsColumn,
  age,
  badge,
  type Content,
  cellColumn,
  code,
  codeColumn,
  definitionList,
  drawer,
  field,
  form,
  formatCount,
  type Html,
  hiddenField,
  html,
  moment,
  pageHeader,
  section,
  sendPage,
  shownOnce,
  stat,
  stats,
  table,
} from '#service-kit/pages/index.ts';
import {
  ageColumn,
  countColumn,
  linkColumn,
  momentColumn,
  noSuchPage,
  readAll,
  timeColumn,
} from '#service-kit/web/index.ts';
import { consoleFrame } from '../frame.ts';
import { Id, type Staff } from '../guard.ts';

/** Admin projects: machines that may use the admin API, their permissions and their tokens. */

const oneOrMany = Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())]));
const ProjectForm = Type.Object({
  name: Type.String(),
  permissions: oneOrMany,
  clusters: Type.Optional(Type.String()),
});
const TokenForm = Type.Object({ days: Type.Optional(Type.String()) });
const RevokeForm = Type.Object({ token_id: Type.String() });
const HandOverForm = Type.Object({
  site_id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }),
  owner_site_id: Type.String({ pattern: '^[1-9][0-9]{0,14}$' }),
  owner_project_id: Type.String({ pattern: '^([1-9][0-9]{0,14})?$' }),
});

export function registerProjects(app: App, deps: Features): void {
  app.get('/projects/', async (request, reply) => showProjects(deps, request.staff!, reply, {}));

  app.post('/projects/', { schema: { body: ProjectForm } }, async (request, reply) => {
    const staff = request.staff!;
    try {
      const project = await deps.adminProjects.create(staff.actor, readProject(request.body));
      return reply.redirect(`/console/projects/${project.id}`, 303);
    } catch (error) {
      return showProjects(deps, staff, reply, { error: sentenceOf(error), name: request.body.name });
    }
  });

  app.get('/projects/:id', { schema: { params: Id } }, async (request, reply) =>
    showProject(deps, request.staff!, reply, request.params.id, {}),
  );

  app.post('/projects/:id', { schema: { params: Id, body: ProjectForm } }, async (request, reply) => {
    const { id } = request.params;
    try {
      await deps.adminProjects.update(request.staff!.actor, id, readProject(request.body));
      return reply.redirect(`/console/projects/${id}`, 303);
    } catch (error) {
      return showProject(deps, request.staff!, reply, id, { error: sentenceOf(error) });
    }
  });

  // The token is in the answer to this very request and in no other page: there is no redirect.
  app.post('/projects/:id/tokens', { schema: { params: Id, body: TokenForm } }, async (request, reply) => {
    const { id } = request.params;
    const staff = request.staff!;
    const expiresAt = expiryOf(request.body.days, deps.clock.nowMs());
    if (expiresAt === undefined) {
      const tokenError = 'Give a whole number of days, or nothing for a token that does not expire.';
      return showProject(deps, staff, reply, id, { tokenError });
    }
    if (!(await deps.adminProjects.find(staff.actor, id))) throw noSuchPage();
    const { token } = await deps.adminProjects.issueToken(staff.actor, id, expiresAt);
    return showProject(deps, staff, reply, id, { token });
  });

  app.post(
    '/projects/:id/sources',
    { schema: { params: Id, body: HandOverForm } },
    async (request, reply) => {
      const { id } = request.params;
      const { site_id, owner_site_id, owner_project_id } = request.body;
      const owner = {
        projectId: owner_project_id === '' ? null : Number(owner_project_id),
        siteId: Number(owner_site_id),
      };
      const to = { projectId: id, siteId: Number(site_id) };
      if (!(await deps.protectTraffic.handOver(request.staff!.actor, to, owner))) throw noSuchPage();
      return reply.redirect(`/console/projects/${id}`, 303);
    },
  );

  app.post('/projects/:id/revoke', { schema: { params: Id, body: RevokeForm } }, async (request, reply) => {
    const { id } = request.params;
    if (!(await deps.adminProjects.revokeToken(request.staff!.actor, id, request.body.token_id)))
      throw noSuchPage();
    return reply.redirect(`/console/projects/${id}`, 303);
  });
}

async function showProjects(
  deps: Features,
  staff: Staff,
  reply: FastifyReply,
  state: { error?: string; name?: string },
): Promise<FastifyReply> {
  const [projects, clusters] = await Promise.all([
    deps.adminProjects.list(staff.actor),
    deps.clusters.listClusters(),
  ]);
  return sendPage(
    reply,
    projectsPage({ staff, projects, clusters, grantable: listGrantable(deps.receivers), ...state }),
    state.error === undefined ? 200 : 422,
  );
}

async function showProject(
  deps: Features,
  staff: Staff,
  reply: FastifyReply,
  id: number,
  state: Pick<ProjectPageOptions, 'error' | 'tokenError' | 'token'>,
): Promise<FastifyReply> {
  const project: AdminProject | null = await deps.adminProjects.find(staff.actor, id);
  if (!project) throw noSuchPage();
  const isRefused = state.error !== undefined || state.tokenError !== undefined;
  const page = { staff, project, ...(await readProjectPage(deps, staff, id)), ...state };
  return sendPage(reply, projectPage(page), isRefused ? 422 : 200);
}

function readProject(body: { name: string; permissions?: string | string[]; clusters?: string }) {
  const clusters = (body.clusters ?? '').split(/[\s,]+/).filter((text) => text !== '');
  return {
    name: body.name,
    permissions: [body.permissions ?? []].flat(),
    clusterIds: clusters.length === 0 ? null : clusters.map(Number),
  };
}

function sentenceOf(error: unknown): string {
  if (error instanceof CodedError && error.code.startsWith('admin_projects.')) return error.message;
  throw error;
}

interface ProjectPageOptions extends Awaited<ReturnType<typeof readProjectPage>> {
  staff: Staff;
  project: AdminProject;
  /** A token that was made by this very request: the only page that shows it. */
  token?: string;
  error?: string;
  tokenError?: string;
}

/** What the page shows of the project. */
const readProjectPage = (deps: Features, { actor }: Staff, id: number) =>
  readAll({
    tokens: deps.adminProjects.listTokens(actor, id),
    clusters: deps.clusters.listClusters(),
    traffic: deps.protectTraffic.readSources(actor, id),
    incidents: deps.protectIncidents.readOutcomes(actor, id),
    grantable: listGrantable(deps.receivers),
    nowMs: deps.clock.nowMs(),
  });

function projectPage(options: ProjectPageOptions): Html {
  const { staff, project, tokens, token } = options;
  const active = tokens.filter((each) => each.isActive).length;
  return consoleFrame({ staff, title: project.name, current: 'projects' }, [
    pageHeader({
      title: project.name,
      state:
        active === 0
          ? { tone: 'warn', text: 'No active token. Issue one to use this project.' }
          : { tone: 'good', text: `${active === 1 ? 'One active token' : `${active} active tokens`}.` },
    }),
    token !== undefined && shownOnce('Token', token, 'We store only its digest and cannot show it again.'),
    section(
      {
        title: 'Tokens',
        description: 'Several tokens may be active at once, so you can replace one without an interruption.',
      },
      [tokensTable(options), staff.canChange && issueForm(options)],
    ),
    sourcesSection(options),
    incidentsSection(options),
    staff.canChange ? editSection(options) : factsSection(options),
  ]);
}

function tokensTable({ tokens, staff, project, nowMs }: ProjectPageOptions): Html {
  return table<AdminToken>({
    caption: 'Tokens',
    card: { line: ['state', 'used'] },
    columns: [
      codeColumn('id', 'Id', (token) => code(`svcadm_${token.id}_…`)),
      cellColumn('state', 'State', stateOf),
      momentColumn('created', 'Created', (token) => token.createdAt.getTime(), nowMs),
      cellColumn('expires', 'Expires', (token) => age(token.expiresAt?.getTime(), nowMs)),
      ageColumn('used', 'Last used', (token) => token.lastUsedAt?.getTime(), nowMs),
      {
        key: 'revoke',
        header: '',
        kind: 'actions',
        cell: (token) =>
          token.isActive && staff.canChange
            ? drawer({ id: `revoke-${token.id}`, open: 'Revoke', title: 'Revoke this token?' }, [
                html`<p>Calls with ${code(`svcadm_${token.id}_…`)} are refused from now on. A revoked token
                  never works again: issue its successor first.</p>`,
                actionButton({
                  action: `/console/projects/${project.id}/revoke`,
                  csrfToken: staff.csrfToken,
                  label: 'Revoke',
                  kind: 'danger',
                  fields: { token_id: token.id },
                }),
              ])
            : '',
      },
    ],
    rows: tokens,
    empty: { title: 'No tokens yet', text: 'Issue one and paste it into the monitor’s settings.' },
  });
}

function stateOf(token: AdminToken): Html {
  if (token.isActive) return badge('good', 'active');
  return token.revokedAt === null ? badge('neutral', 'expired') : badge('neutral', 'revoked');
}

function issueForm({ staff, project, tokenError }: ProjectPageOptions): Html {
  return form(
    {
      action: `/console/projects/${project.id}/tokens`,
      csrfToken: staff.csrfToken,
      submit: 'Issue token',
      layout: 'inline',
      error: tokenError,
    },
    field({
      kind: 'number',
      name: 'days',
      label: 'Expires after days',
      min: 1,
      max: 9999,
      value: defaultDays,
      placeholder: 'never',
    }),
  );
}

function editSection({ staff, project, error, clusters, grantable }: ProjectPageOptions): Html {
  return section(
    { title: 'Permissions', description: 'A change takes effect at once, for every active token.' },
    form({ action: `/console/projects/${project.id}`, csrfToken: staff.csrfToken, submit: 'Save', error }, [
      field({ name: 'name', label: 'Name', required: true, maxLength: 120, value: project.name }),
      projectFields(project, clusters, grantable),
    ]),
  );
}

function factsSection({ project, clusters, grantable }: ProjectPageOptions): Html {
  return section(
    { title: 'Permissions' },
    definitionList([
      ...grantable.map(({ permission: name, hint }) => ({
        // Words, which break where a line ends.
        term: name.replaceAll('_', ' '),
        value: project.permissions.some((each) => each === name) ? `Yes. ${hint}` : 'No',
      })),
      { term: 'Clusters', value: namesOfClusters(project, clusters) },
    ]),
  );
}

interface IncidentsOptions {
  incidents: ProjectOutcomes;
  nowMs: number;
}

/** Nothing for a project that delivers no incidents. */
function incidentsSection(options: IncidentsOptions): Content {
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
      codeColumn('target', 'Target', (row) => code(row.target)),
      cellColumn('kind', 'Kind', (row) => row.targetKind),
      cellColumn('class', 'Class', (row) => titleOfClass(row.class)),
      cellColumn('outcome', 'Outcome', (row) => outcomeTexts[row.outcome]),
      cellColumn('site', 'Monitor site', (row) => String(row.siteId)),
      ageColumn('at', 'Last delivered', (row) => row.refusedAt.getTime(), nowMs),
      codeColumn('id', 'Incident', (row) => code(row.incidentId)),
    ],
    rows: incidents.refusals,
    empty: { title: 'None', text: '' },
  });
}

interface SourcesOptions {
  staff: Staff;
  project: AdminProject;
  traffic: ProjectSources;
  nowMs: number;
}

/** Nothing for a project that delivers no minutes. */
function sourcesSection(options: SourcesOptions): Content {
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
      cellColumn('site', 'Monitor site', ({ siteId }) => String(siteId)),
      countColumn('addresses', 'Addresses', (row) => row.generations),
      ageColumn('seen', 'Last delivery', ({ seenAt }) => seenAt.getTime(), nowMs),
      cellColumn('taken', 'Took over', ({ takenOverAt }) =>
        takenOverAt ? moment(takenOverAt.getTime(), nowMs) : '',
      ),
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
      cellColumn('site', 'Monitor site', ({ siteId }) => String(siteId)),
      countColumn('addresses', 'Addresses', (row) => row.generations),
      cellColumn('owner', 'Owner', ownerOf),
      ageColumn('seen', 'Owner delivered', (row) => row.ownerSeenAt.getTime(), nowMs),
      ageColumn('refused', 'Last refused', (row) => row.refusedAt.getTime(), nowMs),
      actionsColumn(
        'hand-over',
        (row) =>
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
      ),
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
      codeColumn('address', 'Address', ({ address }) => code(address)),
      momentColumn('minute', 'Minute', ({ minute }) => minute.getTime(), nowMs),
      cellColumn('site', 'Monitor site', ({ siteId }) => String(siteId)),
      cellColumn('reason', 'Reason', ({ reason }) => reasons[reason] ?? reason),
    ],
    rows: traffic.setAside,
    empty: { title: 'None', text: '' },
  });
}

interface ProjectsPageOptions {
  staff: Staff;
  projects: readonly AdminProject[];
  clusters: readonly Cluster[];
  grantable: readonly GrantablePermission[];
  /** What a refused form held. */
  name?: string;
  error?: string;
}

function projectsPage(options: ProjectsPageOptions): Html {
  const { staff, projects, clusters } = options;
  const count = projects.length;
  return consoleFrame({ staff, title: 'Admin projects', current: 'projects' }, [
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
  ]);
}

/** In words: an id says nothing to a person. */
function namesOfClusters(project: AdminProject, clusters: readonly Cluster[]): string {
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
function projectFields(
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
