/** What an operator does to a customer's account and its people; support sees the tables alone. */
import type { Membership, Tenant } from '#operations/accounts/index.ts';
import {
  actionButton,
  badge,
  type Content,
  drawer,
  field,
  form,
  type Html,
  hiddenField,
  html,
  section,
  table,
} from '#service-kit/pages/index.ts';
import type { Staff } from '../guard.ts';
import { personActions } from '../person-actions.ts';

interface AccountOptions {
  staff: Staff;
  tenant: Tenant;
  /** Names the adjustment's form: sent twice, it is entered once. */
  formId: string;
}

/** The buttons beside the customer's name. */
export function accountActions({ staff, tenant, formId }: AccountOptions): Content {
  const base = `/console/customers/${tenant.id}`;
  const { csrfToken } = staff;
  const { currency } = tenant;
  const isActive = tenant.status === 'ACTIVE';
  return [
    drawer({ id: 'book-payment', open: 'Record a payment', title: 'Record a payment' }, [
      html`<p>Money that came in another way than by card, such as a bank transfer. It counts as a deposit, which opens
        the API to an account that never paid.</p>`,
      form({ action: `${base}/credit`, csrfToken, submit: 'Record payment' }, [
        field({ name: 'amount', label: `Amount in ${currency}`, required: true, placeholder: '25.00' }),
        field({
          name: 'reference',
          label: 'Reference',
          hint: 'Identifies the payment. A reference is recorded once only.',
          required: true,
          maxLength: 100,
        }),
      ]),
    ]),
    drawer({ id: 'adjust-credit', open: 'Adjust credit', title: 'Adjust credit' }, [
      html`<p>Adds or removes credit without a payment. The customer sees the reason in the ledger.</p>`,
      form({ action: `${base}/adjust`, csrfToken, submit: 'Adjust credit' }, [
        hiddenField('form_id', formId),
        field({
          id: 'adjust-amount',
          name: 'amount',
          label: `Amount in ${currency}`,
          hint: 'Negative to remove credit.',
          required: true,
          placeholder: '-5.00',
        }),
        field({ name: 'reason', label: 'Reason', required: true, maxLength: 200 }),
      ]),
    ]),
    tenant.status === 'SUSPENDED' &&
      actionButton({
        action: `${base}/status`,
        csrfToken,
        label: 'Activate',
        kind: 'primary',
        fields: { status: 'ACTIVE' },
      }),
    isActive &&
      drawer({ id: 'ask-suspend', open: 'Suspend', title: `Suspend ${tenant.name}?`, openKind: 'danger' }, [
        html`<p>Its API answers 403 from the next call on and nothing can be ordered. Its servers go on running and
            costing. It stays so until an operator activates it again.</p>`,
        actionButton({
          action: `${base}/status`,
          csrfToken,
          label: 'Suspend',
          kind: 'danger',
          fields: { status: 'SUSPENDED' },
        }),
      ]),
  ];
}

/** The people of the organization; an operator lets them in and keeps them out. */
export function membersSection({
  staff,
  tenant,
  members,
}: {
  staff: Staff;
  tenant: Tenant;
  members: readonly Membership[];
}): Html {
  return section(
    {
      title: 'Members',
      description: `Of the organization ${tenant.organizationName}. A deactivated person can’t sign in, and their keys stop at once.`,
    },
    table<Membership>({
      caption: 'Members',
      card: { line: ['role', 'state', 'email'] },
      columns: [
        { key: 'name', header: 'Name', cell: (member) => member.personName },
        { key: 'email', header: 'Email', cell: (member) => member.personEmail },
        { key: 'role', header: 'Role', cell: (member) => badge('neutral', member.role) },
        {
          key: 'state',
          header: 'State',
          cell: (member) =>
            badge(member.isActive ? 'good' : 'warn', member.isActive ? 'active' : 'deactivated'),
        },
        ...(staff.canChange
          ? [
              {
                key: 'act',
                header: 'Actions',
                kind: 'actions' as const,
                cell: (member: Membership) => memberActions(staff, tenant, member),
              },
            ]
          : []),
      ],
      rows: members,
      empty: { title: 'No members', text: 'Members of the organization appear here.' },
    }),
  );
}

function memberActions(staff: Staff, tenant: Tenant, member: Membership): Content {
  const { personId: id, personName: name, isActive } = member;
  return personActions({
    base: `/console/customers/${tenant.id}/members`,
    csrfToken: staff.csrfToken,
    person: { id, name, isActive },
    deactivation:
      'Their sessions end. Their API keys are refused until an operator activates the person again.',
  });
}
