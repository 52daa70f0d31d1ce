import type { AdminProject, AdminToken } from '#operations/admin-projects/index.ts';
import type { Cluster } from '#operations/clusters/index.ts';
import type { GrantablePermission } from '#operations/feeds/index.ts';
import type { ProjectOutcomes, ProjectSources } from '#operations/protect/index.ts';
import { defaultDays } from '#service-kit/credentials/index.ts';
import {
  actionButton,
  age,
  badge,
  banner,
  type Content,
  code,
  codeBlock,
  definitionList,
  drawer,
  field,
  form,
  type Html,
  html,
  moment,
  pageHeader,
  section,
  table,
} from '#service-kit/pages/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';
import { incidentsSection } from './project-incidents.ts';
import { sourcesSection } from './project-sources.ts';
import { namesOfClusters, projectFields } from './projects.page.ts';

export interface ProjectPageOptions {
  staff: Staff;
  project: AdminProject;
  tokens: readonly AdminToken[];
  clusters: readonly Cluster[];
  grantable: readonly GrantablePermission[];
  traffic: ProjectSources;
  incidents: ProjectOutcomes;
  nowMs: number;
  /** A token that was made by this very request: the only page that shows it. */
  token?: string;
  error?: string;
  tokenError?: string;
}

export function projectPage(options: ProjectPageOptions): Html {
  const { staff, project, tokens, token } = options;
  const active = tokens.filter((each) => each.isActive).length;
  return consoleFrame(
    {
      staff,
      title: project.name,
      current: 'projects',
      breadcrumb: [{ label: 'Admin projects', href: '/console/projects/' }, { label: project.name }],
    },
    [
      pageHeader({
        title: project.name,
        state:
          active === 0
            ? { tone: 'warn', text: 'No active token. Issue one to use this project.' }
            : { tone: 'good', text: `${active === 1 ? 'One active token' : `${active} active tokens`}.` },
      }),
      token !== undefined && newToken(token),
      section(
        {
          title: 'Tokens',
          description:
            'Several tokens may be active at once, so you can replace one without an interruption.',
        },
        [tokensTable(options), staff.canChange && issueForm(options)],
      ),
      sourcesSection(options),
      incidentsSection(options),
      staff.canChange ? editSection(options) : factsSection(options),
    ],
  );
}

function newToken(token: string): Content {
  return [
    banner({
      tone: 'warn',
      title: 'Copy the token now',
      text: 'It is shown on this page only. We store only its digest and cannot show it again.',
    }),
    codeBlock({ code: token, label: 'Token' }),
  ];
}

function tokensTable({ tokens, staff, project, nowMs }: ProjectPageOptions): Html {
  return table<AdminToken>({
    caption: 'Tokens',
    card: { line: ['state', 'used'] },
    columns: [
      { key: 'id', header: 'Id', kind: 'code', cell: (token) => code(`svcadm_${token.id}_…`) },
      { key: 'state', header: 'State', cell: stateOf },
      { key: 'created', header: 'Created', cell: (token) => moment(token.createdAt.getTime(), nowMs) },
      {
        key: 'expires',
        header: 'Expires',
        cell: (token) => age(token.expiresAt?.getTime(), nowMs),
      },
      {
        key: 'used',
        header: 'Last used',
        kind: 'figure',
        cell: (token) => age(token.lastUsedAt?.getTime(), nowMs),
      },
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
    {
      title: 'Permissions',
      description: 'A change takes effect at once, for every active token.',
    },
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
