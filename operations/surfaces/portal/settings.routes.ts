/** `/client/settings/`: organization, people, workspaces, billing profiles, and one's own password and sessions. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Clock } from '#common/clock/index.ts';
import { CodedError } from '#common/errors/index.ts';
import type { Accounts } from '#operations/accounts/index.ts';
import { type App, originOf, sourceBucket } from '#service-kit/http/index.ts';
import { sendPage, type Tone } from '#service-kit/pages/index.ts';
import type { Sessions } from '#service-kit/sessions/index.ts';
import { noSuchPage, type Visitor } from './guard.ts';
import { type OrganizationView, settingsPage } from './settings.page.ts';

export interface SettingsDeps {
  accounts: Accounts;
  sessions: Sessions;
  clock: Clock;
  publicUrl: string | null;
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
const PasswordForm = Type.Object({
  current: Type.String({ maxLength: 1_000 }),
  next: Type.String({ maxLength: 1_000 }),
});
const Query = Type.Object({ done: Type.Optional(Type.String()) });

const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  saved: { tone: 'good', text: 'Saved.' },
  removed: { tone: 'good', text: 'Removed. Their sessions and keys reach nothing here any more.' },
  revoked: { tone: 'good', text: 'The invitation does not work any more.' },
  password: { tone: 'good', text: 'Your password is changed; your other sessions are ended.' },
  sessions: { tone: 'good', text: 'Your other sessions are ended.' },
};

export function registerSettings(app: App, deps: SettingsDeps): void {
  app.get('/settings/', { schema: { querystring: Query } }, async (request, reply) => {
    const { done } = request.query;
    return show(deps, request, reply, { toast: done ? outcomes[done] : undefined });
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

  // The link is in the answer to this very request, as a key's token is.
  app.post('/settings/invitations', { schema: { body: InviteForm } }, async (request, reply) => {
    const { organization, email } = request.body;
    try {
      const made = await deps.accounts.inviteMember(request.visitor!.actor, Number(organization), email);
      const base = deps.publicUrl ?? `${request.protocol}://${request.host}`;
      const invitationLink = { email: made.invitation.email, url: `${base}/join/${made.secret}` };
      return show(deps, request, reply, { invitationLink });
    } catch (error) {
      return refuse(deps, request, reply, error);
    }
  });

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

  app.post('/settings/password', { schema: { body: PasswordForm } }, async (request, reply) => {
    const { actor, person } = request.visitor!;
    // Guessing the old password from a stolen session is counted like guessing it at the door.
    const { cookie } = request.headers;
    const attempt = await deps.sessions.beginAttempt(person.email, sourceBucket(request.ip), cookie);
    if (attempt === null) {
      const error = 'Too many failed attempts. Wait ten minutes, then try again.';
      return show(deps, request, reply, { error }, 429);
    }
    try {
      await deps.accounts.changePassword(actor, request.body);
    } catch (error) {
      if (!(error instanceof CodedError && error.message.startsWith('The current'))) await attempt.giveBack();
      return refuse(deps, request, reply, error);
    }
    await attempt.giveBack();
    await deps.sessions.endOthers(actor.personId, cookie);
    return reply.redirect('/client/settings/?done=password', 303);
  });

  app.post('/settings/sessions/end', (request, reply) =>
    change(deps, request, reply, 'sessions', async ({ actor }) => {
      await deps.sessions.endOthers(actor.personId, request.headers.cookie);
      await deps.accounts.noteSession(actor.personId, 'session.end_others', originOf(request));
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

/** What may not be so is said on the page; everything else is somebody else's to answer. */
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
    invitationLink?: { email: string; url: string };
  },
  status = 200,
): Promise<FastifyReply> {
  const visitor = request.visitor!;
  const [organizations, sessions] = await Promise.all([
    readOrganizations(deps, visitor),
    deps.sessions.list(visitor.actor.personId, request.headers.cookie),
  ]);
  return sendPage(
    reply,
    settingsPage({ visitor, organizations, sessions, nowMs: deps.clock.nowMs(), ...said }),
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
