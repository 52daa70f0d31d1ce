/** `/client/settings/`: the organization, who belongs to it, and who is invoiced. */
import type { BillingProfile, Invitation, Membership, Tenant } from '#operations/accounts/index.ts';
import {
  askButton,
  backButton,
  badge,
  banner,
  type Content,
  field,
  form,
  formatCount,
  type Html,
  hiddenField,
  link,
  pageHeader,
  section,
  type Tone,
  table,
  utcTime,
} from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';

/** One organization as its page shows it. */
export interface OrganizationView {
  id: number;
  name: string;
  isOwner: boolean;
  members: readonly Membership[];
  /** Empty for members, who don't see them. */
  invitations: readonly Invitation[];
  workspaces: readonly { tenant: Tenant; profile: BillingProfile | null }[];
}

export interface SettingsPageOptions {
  visitor: Visitor;
  organizations: readonly OrganizationView[];
  /** Invitations can be mailed. */
  canMail: boolean;
  toast?: { tone: Tone; text: string } | undefined;
  error?: string | undefined;
}

export function settingsPage(options: SettingsPageOptions): Html {
  const { visitor, organizations } = options;
  return portalFrame(
    {
      visitor,
      title: 'Settings',
      current: 'settings',
      breadcrumb: [{ label: 'Settings' }],
      toast: options.toast,
    },
    [
      pageHeader({
        title: 'Settings',
        state: stateOf(organizations),
        actions: link('/client/account/', 'Your account', { kind: 'button' }),
      }),
      options.error &&
        banner({ tone: 'bad', title: 'Nothing was changed', text: options.error, actions: backButton() }),
      organizations.map((organization) => organizationSections(options, organization)),
    ],
  );
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
          { key: 'name', header: 'Name', cell: (member) => member.personName },
          { key: 'email', header: 'Email', cell: (member) => member.personEmail },
          {
            key: 'role',
            header: 'Role',
            cell: (member) => badge(member.role === 'owner' ? 'info' : 'neutral', member.role),
          },
          { key: 'remove', header: '', kind: 'actions', cell: remove },
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
      { key: 'email', header: 'Invited', cell: (invitation) => invitation.email },
      {
        key: 'until',
        header: 'Expires',
        kind: 'time',
        cell: (invitation) => utcTime(invitation.expiresAt.getTime()),
      },
      {
        key: 'revoke',
        header: '',
        kind: 'actions',
        cell: (invitation) =>
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
      },
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
          { key: 'name', header: 'Workspace', cell: ({ tenant }) => tenant.name },
          { key: 'slug', header: 'Name in the API', kind: 'code', cell: ({ tenant }) => tenant.slug },
          { key: 'id', header: 'Id', kind: 'figure', cell: ({ tenant }) => String(tenant.id) },
          {
            key: 'status',
            header: 'Status',
            cell: ({ tenant }) => badge(statusTones[tenant.status], tenant.status.toLowerCase()),
          },
          {
            key: 'invoiced',
            header: 'Invoiced to',
            cell: ({ profile }) => profile?.legalName ?? badge('warn', 'billing profile missing'),
          },
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
