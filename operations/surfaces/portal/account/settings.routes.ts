/** `/client/settings/`: organization, people, workspaces, billing profiles. One's own account has its own page. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import type { App } from '#service-kit/http/index.ts';
import type { Post } from '#service-kit/mail/index.ts';
import { chosenOf, sendPage, type Tone } from '#service-kit/pages/index.ts';
import { noSuchPage } from '#service-kit/web/index.ts';
import type { Visitor } from '../guard.ts';
import { type OrganizationView, settingsPage } from './settings.page.ts';

interface SettingsDeps {
  accounts: Accounts;
  post: Post;
}

const Id = Type.String({ pattern: '^[1-9][0-9]{0,14}$' });
const Name = Type.String({ maxLength: 200 });
const NameForm = Type.Object({ organization: Id, name: Name });
const InviteForm = Type.Object({ organization: Id, email: Type.String({ maxLength: 320 }) });
const RevokeForm = Type.Object({ organization: Id, invitation: Id });
const RemoveForm = Type.Object({ organization: Id, person: Id });
const ProfileForm = Type.Object({
  tenant: Id,
  tenant_name: Name,
  legal_name: Name,
  email: Type.String({ maxLength: 320 }),
  country: Type.String({ maxLength: 2 }),
});
const Query = Type.Object({ done: Type.Optional(Type.String()) });

const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  saved: { tone: 'good', text: 'Saved.' },
  removed: {
    tone: 'good',
    text: 'Removed. Their sessions and keys no longer have access to this organization.',
  },
  revoked: { tone: 'good', text: 'The invitation is revoked.' },
  invited: { tone: 'good', text: 'The invitation was emailed. It expires in seven days.' },
};

export function registerSettings(app: App, deps: SettingsDeps): void {
  app.get('/settings/', { schema: { querystring: Query } }, async (request, reply) => {
    const { done } = request.query;
    return show(deps, request, reply, { toast: chosenOf(outcomes, done) });
  });

  app.post('/settings/organization', { schema: { body: NameForm } }, (request, reply) =>
    change(deps, request, reply, 'saved', (visitor) =>
      deps.accounts.renameOrganization(visitor.actor, Number(request.body.organization), request.body.name),
    ),
  );

  app.post('/settings/workspaces', { schema: { body: NameForm } }, (request, reply) =>
    change(deps, request, reply, 'saved', async (visitor) => {
      const organizationId = Number(request.body.organization);
      await deps.accounts.createTenant(visitor.actor, { organizationId, name: request.body.name });
    }),
  );

  app.post('/settings/invitations', { schema: { body: InviteForm } }, (request, reply) =>
    change(deps, request, reply, 'invited', async ({ actor }) => {
      const { organization, email } = request.body;
      await deps.accounts.inviteMember(actor, Number(organization), email);
    }),
  );

  app.post('/settings/invitations/revoke', { schema: { body: RevokeForm } }, (request, reply) =>
    change(deps, request, reply, 'revoked', async ({ actor }) => {
      const { organization, invitation } = request.body;
      if (!(await deps.accounts.revokeInvitation(actor, Number(organization), Number(invitation))))
        throw noSuchPage();
    }),
  );

  app.post('/settings/members/remove', { schema: { body: RemoveForm } }, (request, reply) =>
    change(deps, request, reply, 'removed', async ({ actor }) => {
      const { organization, person } = request.body;
      if (!(await deps.accounts.removeMember(actor, Number(organization), Number(person))))
        throw noSuchPage();
    }),
  );

  app.post('/settings/profile', { schema: { body: ProfileForm } }, (request, reply) =>
    change(deps, request, reply, 'saved', async ({ actor }) => {
      const { tenant, tenant_name: name, legal_name: legalName, email, country } = request.body;
      if (!actor.tenantIds.includes(Number(tenant))) throw noSuchPage();
      const profile = { legalName, email, country: country.toUpperCase() };
      await deps.accounts.setBillingProfile(actor, Number(tenant), profile);
      await deps.accounts.renameTenant(actor, Number(tenant), name);
    }),
  );
}

async function change(
  deps: SettingsDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  done: string,
  work: (visitor: Visitor) => Promise<void>,
): Promise<FastifyReply> {
  try {
    await work(request.visitor!);
    return reply.redirect(`/client/settings/?done=${done}`, 303);
  } catch (error) {
    return refuse(deps, request, reply, error);
  }
}

/** Shows a validation error on the page and rethrows all other errors. */
function refuse(
  deps: SettingsDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  error: unknown,
): Promise<FastifyReply> {
  if (!(error instanceof CodedError) || error.code !== 'accounts.invalid') throw error;
  return show(deps, request, reply, { error: error.message }, 422);
}

async function show(
  deps: SettingsDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  said: {
    toast?: { tone: Tone; text: string } | undefined;
    error?: string;
  },
  status = 200,
): Promise<FastifyReply> {
  const visitor = request.visitor!;
  const organizations = await readOrganizations(deps, visitor);
  return sendPage(
    reply,
    settingsPage({ visitor, organizations, canMail: deps.post.canSend, ...said }),
    status,
  );
}

async function readOrganizations({ accounts }: SettingsDeps, visitor: Visitor): Promise<OrganizationView[]> {
  const memberships = await accounts.membershipsOf(visitor.actor.personId);
  return Promise.all(
    memberships.map(async ({ organizationId, organizationName, role }) => {
      const isOwner = role === 'owner';
      const [members, invitations, tenants] = await Promise.all([
        accounts.membersOf(organizationId),
        isOwner ? accounts.listInvitations(visitor.actor, organizationId) : [],
        accounts.tenantsOfOrganization(organizationId),
      ]);
      const workspaces = await Promise.all(
        tenants.map(async (tenant) => ({ tenant, profile: await accounts.billingProfileOf(tenant.id) })),
      );
      return { id: organizationId, name: organizationName, isOwner, members, invitations, workspaces };
    }),
  );
}
