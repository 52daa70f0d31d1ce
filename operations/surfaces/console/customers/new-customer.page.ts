import { field, form, type Html, link, pageHeader } from '#service-kit/pages/index.ts';
import { consoleFrame } from '../frame.ts';
import type { Staff } from '../guard.ts';

export interface NewCustomerOptions {
  staff: Staff;
  given?: { organization: string; name: string; email: string };
  fault?: { field: string; message: string } | undefined;
}

/** `/console/customers/new`: an organization with its owner, who sets a password by a link. */
export function newCustomerPage({ staff, given, fault }: NewCustomerOptions): Html {
  const errorOf = (name: string) => (fault?.field === name ? fault.message : undefined);
  return consoleFrame(
    {
      staff,
      title: 'New customer',
      current: 'customers',
      breadcrumb: [{ label: 'Customers', href: '/console/customers/' }, { label: 'New customer' }],
    },
    [
      pageHeader({
        title: 'New customer',
        state: {
          tone: 'info',
          text: 'The owner sets a password, adds a billing profile, and pays or gets credit. Then servers can be deployed.',
        },
      }),
      form(
        {
          action: '/console/customers/',
          csrfToken: staff.csrfToken,
          submit: 'Create customer',
          cancel: link('/console/customers/', 'Cancel', { kind: 'button' }),
        },
        [
          field({
            name: 'organization',
            label: 'Organization',
            required: true,
            maxLength: 120,
            value: given?.organization,
            error: errorOf('organization'),
          }),
          field({
            kind: 'email',
            name: 'email',
            label: 'Owner’s email address',
            hint: 'We email a link to set a password. A person who already has an account keeps their name and password.',
            required: true,
            maxLength: 254,
            autocomplete: 'off',
            value: given?.email,
            error: errorOf('email'),
          }),
          field({
            name: 'name',
            label: 'Name of its owner',
            maxLength: 120,
            autocomplete: 'off',
            value: given?.name,
            error: errorOf('name'),
          }),
        ],
      ),
    ],
  );
}
