/** `/client/settings/`: organization, people, workspaces, billing profiles. One's own account has its own page. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { CodedError } from '#common/errors/index.ts';
import type { BillingProfile, Invitation, Membership, Tenant } from '#operations/accounts/index.ts';
import type { Features } from '#operations/features.ts';
import type { App } from '#service-kit/http/index.ts';
import {
  actionsColumn,
  askButton,
  backButton,
  badge,
  banner,
  type Content,
  cellColumn,
  chosenOf,
  codeColumn,
  field,
  form,
  formatCount,
  type Html,
  hiddenField,
  link,
  pageHeader,
  section,
  sendPage,
  type Tone,
  table,
} from '#service-kit/pages/index.ts';
import { noSuchPage, timeColumn } from '#service-kit/web/index.ts';
import { portalFrame } from '../frame.ts';
import { Done, type Visitor } from '../guard.ts';

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

const outcomes: Readonly<Record<string, { tone: Tone; text: string }>> = {
  saved: { tone: 'good', text: 'Saved.' },
  removed: {
    tone: 'good',
    text: 'Removed. Their sessions and keys no longer have access to this organization.',
  },
  revoked: { tone: 'good', text: 'The invitation is revoked.' },
  invited: { tone: 'good', text: 'The invitation was emailed. It expires in seven days.' },
};

export function registerSettings(app: App, deps: Features): void {
  app.get('/settings/', { schema: { querystring: Done } }, async (request, reply) => {
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
  deps: Features,
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
function refuse(deps: Features, request: FastifyRequest, reply: FastifyReply, error: unknown) {
  if (!(error instanceof CodedError) || error.code !== 'accounts.invalid') throw error;
  return show(deps, request, reply, { error: error.message }, 422);
}

async function show(
  deps: Features,
  request: FastifyRequest,
  reply: FastifyReply,
  said: { toast?: { tone: Tone; text: string } | undefined; error?: string },
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

async function readOrganizations({ accounts }: Features, visitor: Visitor): Promise<OrganizationView[]> {
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

/** One organization as its page shows it. */
interface OrganizationView {
  id: number;
  name: string;
  isOwner: boolean;
  members: readonly Membership[];
  /** Empty for members, who don't see them. */
  invitations: readonly Invitation[];
  workspaces: readonly { tenant: Tenant; profile: BillingProfile | null }[];
}

interface SettingsPageOptions {
  visitor: Visitor;
  organizations: readonly OrganizationView[];
  /** Invitations can be mailed. */
  canMail: boolean;
  toast?: { tone: Tone; text: string } | undefined;
  error?: string | undefined;
}

/** `/client/settings/`: the organization, who belongs to it, and who is invoiced. */
function settingsPage(options: SettingsPageOptions): Html {
  const { visitor, organizations } = options;
  return portalFrame({ visitor, title: 'Settings', current: 'settings', toast: options.toast }, [
    pageHeader({
      title: 'Settings',
      state: stateOf(organizations),
      actions: link('/client/account/', 'Your account', { kind: 'button' }),
    }),
    options.error &&
      banner({ tone: 'bad', title: 'Nothing was changed', text: options.error, actions: backButton() }),
    organizations.map((organization) => organizationSections(options, organization)),
  ]);
}

function stateOf(organizations: readonly OrganizationView[]): { tone: Tone; text: string } {
  if (organizations.length === 0)
    return { tone: 'warn', text: 'You belong to no organization: ask an owner to invite you.' };
  const missing = organizations
    .flatMap((organization) => organization.workspaces)
    .filter(({ profile }) => profile === null);
  if (missing.length > 0)
    return {
      tone: 'warn',
      text: `${missing.map(({ tenant }) => tenant.name).join(', ')} has no billing profile, so its API is locked.`,
    };
  const [first] = organizations;
  const people = first!.members.length === 1 ? 'one person' : `${formatCount(first!.members.length)} people`;
  return organizations.length === 1
    ? {
        tone: 'good',
        text: `${first!.name}: ${people}, you are ${first!.isOwner ? 'its owner' : 'a member'}.`,
      }
    : { tone: 'good', text: `You belong to ${organizations.length} organizations.` };
}

function organizationSections(options: SettingsPageOptions, organization: OrganizationView): Content {
  const { visitor } = options;
  const { isOwner, id } = organization;
  return [
    section(
      { title: organization.name, id: `organization-${id}` },
      isOwner
        ? form(
            {
              action: '/client/settings/organization',
              csrfToken: visitor.csrfToken,
              submit: 'Rename',
              submitKind: 'button',
              layout: 'inline',
            },
            [
              hiddenField('organization', id),
              field({
                id: `name-${id}`,
                name: 'name',
                label: 'Name of the organization',
                value: organization.name,
                required: true,
                maxLength: 120,
              }),
            ],
          )
        : banner({
            tone: 'info',
            title: 'You are a member',
            text: 'The owner invites people, changes names and the billing profile, and creates keys.',
          }),
    ),
    membersSection(options, organization),
    workspacesSection(options, organization),
    isOwner && organization.workspaces.map(({ tenant, profile }) => profileSection(visitor, tenant, profile)),
  ];
}

function membersSection({ visitor, canMail }: SettingsPageOptions, organization: OrganizationView): Html {
  const { id, isOwner, invitations } = organization;
  const remove = (member: Membership) =>
    isOwner && member.role !== 'owner'
      ? askButton(
          {
            id: `remove-member-${id}-${member.personId}`,
            label: 'Remove',
            title: `Remove ${member.personName}?`,
            action: '/client/settings/members/remove',
            csrfToken: visitor.csrfToken,
            fields: { organization: id, person: member.personId },
          },
          'They see nothing of this organization any more, and keys that act for them stop at once. To come back they need a new invitation.',
        )
      : '';
  return section(
    {
      title: 'Members',
      id: `members-${id}`,
      description:
        'Members can view and change all servers and networks of the organization. Only the owner creates API keys.',
    },
    [
      table<Membership>({
        caption: 'Members',
        card: { line: ['role', 'email'] },
        columns: [
          cellColumn('name', 'Name', (member) => member.personName),
          cellColumn('email', 'Email', (member) => member.personEmail),
          cellColumn('role', 'Role', (member) =>
            badge(member.role === 'owner' ? 'info' : 'neutral', member.role),
          ),
          actionsColumn('remove', remove),
        ],
        rows: organization.members,
        empty: { title: 'No members', text: 'Members appear here.' },
      }),
      isOwner && invitations.length > 0 && invitationsTable(visitor, organization),
      isOwner &&
        !canMail &&
        banner({
          tone: 'info',
          title: 'Invitations are not available',
          text: 'This installation has no mail server, so it cannot send invitations. Ask support.',
        }),
      isOwner &&
        canMail &&
        form(
          {
            action: '/client/settings/invitations',
            csrfToken: visitor.csrfToken,
            submit: 'Mail an invitation',
            submitKind: 'button',
            layout: 'inline',
          },
          [
            hiddenField('organization', id),
            field({
              kind: 'email',
              id: `email-${id}`,
              name: 'email',
              label: 'Invite by email address',
              hint: 'We email a link. It works once and expires in seven days.',
              required: true,
              maxLength: 254,
            }),
          ],
        ),
    ],
  );
}

function invitationsTable(visitor: Visitor, { id, invitations }: OrganizationView): Html {
  return table<Invitation>({
    caption: 'Open invitations',
    card: { line: ['until'] },
    captionVisible: true,
    columns: [
      cellColumn('email', 'Invited', (invitation) => invitation.email),
      timeColumn('until', 'Expires', (invitation) => invitation.expiresAt.getTime()),
      actionsColumn('revoke', (invitation) =>
        askButton(
          {
            id: `revoke-invitation-${invitation.id}`,
            label: 'Revoke',
            title: `Revoke the invitation of ${invitation.email}?`,
            action: '/client/settings/invitations/revoke',
            csrfToken: visitor.csrfToken,
            fields: { organization: id, invitation: invitation.id },
          },
          'Its link stops working. You can invite them again.',
        ),
      ),
    ],
    rows: invitations,
    empty: { title: 'None', text: 'Open invitations appear here.' },
  });
}

const statusTones: Record<Tenant['status'], Tone> = { ACTIVE: 'good', SUSPENDED: 'bad', CLOSED: 'neutral' };

function workspacesSection({ visitor }: SettingsPageOptions, organization: OrganizationView): Html {
  return section(
    {
      title: 'Workspaces',
      id: `workspaces-${organization.id}`,
      description:
        'Each workspace has its own servers, networks, credit and ledger. Keys use the first one by default.',
    },
    [
      table<OrganizationView['workspaces'][number]>({
        caption: 'Workspaces',
        card: { line: ['status', 'slug'] },
        columns: [
          cellColumn('name', 'Workspace', ({ tenant }) => tenant.name),
          codeColumn('slug', 'Name in the API', ({ tenant }) => tenant.slug),
          { key: 'id', header: 'Id', kind: 'figure', cell: ({ tenant }) => String(tenant.id) },
          cellColumn('status', 'Status', ({ tenant }) =>
            badge(statusTones[tenant.status], tenant.status.toLowerCase()),
          ),
          cellColumn(
            'invoiced',
            'Invoiced to',
            ({ profile }) => profile?.legalName ?? badge('warn', 'billing profile missing'),
          ),
        ],
        rows: organization.workspaces,
        empty: { title: 'No workspace', text: 'Workspaces appear here.' },
      }),
      organization.isOwner &&
        form(
          {
            action: '/client/settings/workspaces',
            csrfToken: visitor.csrfToken,
            submit: 'Add a workspace',
            submitKind: 'button',
            layout: 'inline',
          },
          [
            hiddenField('organization', organization.id),
            field({
              id: `workspace-${organization.id}`,
              name: 'name',
              label: 'Name of a new workspace',
              required: true,
              maxLength: 120,
            }),
          ],
        ),
    ],
  );
}

function profileSection(visitor: Visitor, tenant: Tenant, profile: BillingProfile | null): Html {
  const id = (name: string) => `${name}-${tenant.id}`;
  return section(
    {
      title: `Billing profile of ${tenant.name}`,
      id: tenant.isPayer ? 'profile' : `profile-${tenant.id}`,
      description: 'The legal entity on the invoice. The workspace’s API is locked until the profile exists.',
    },
    form(
      {
        action: '/client/settings/profile',
        csrfToken: visitor.csrfToken,
        submit: 'Save',
        submitKind: 'button',
      },
      [
        hiddenField('tenant', tenant.id),
        field({
          id: id('tenant-name'),
          name: 'tenant_name',
          label: 'Name of the workspace',
          value: tenant.name,
          required: true,
          maxLength: 120,
        }),
        field({
          id: id('legal'),
          name: 'legal_name',
          label: 'Legal name',
          value: profile?.legalName ?? '',
          required: true,
          maxLength: 120,
          autocomplete: 'organization',
        }),
        field({
          kind: 'email',
          id: id('billing-email'),
          name: 'email',
          label: 'Email address for invoices',
          value: profile?.email ?? '',
          required: true,
          maxLength: 254,
        }),
        field({
          id: id('country'),
          name: 'country',
          label: 'Country',
          hint: 'Two letters, such as DE.',
          value: profile?.country ?? '',
          required: true,
          maxLength: 2,
          pattern: '[A-Za-z]{2}',
        }),
      ],
    ),
  );
}
