import type { Features } from '#operations/features.ts';
/** Admin projects: machines that may use the admin API, their permissions and their tokens. */

import type { FastifyReply } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { AdminProject } from '#operations/admin-projects/index.ts';
import { listGrantable } from '#operations/feeds/index.ts';
import { expiryOf } from '#service-kit/credentials/index.ts';
import type { App } from '#service-kit/http/index.ts';
import { sendPage } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Staff } from '../guard.ts';
import { type ProjectPageOptions, projectPage, readProjectPage } from './project.page.ts';
import { projectsPage } from './projects.page.ts';

const Id = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) });
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
