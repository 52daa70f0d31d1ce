/** The two pages around the gateway's own: on the way to it, and back with the card that it has taken. */
import type { Tenant } from '#operations/accounts/index.ts';
import type { Payments } from '#operations/payments/index.ts';
import { form, type Html, hiddenField, html, link, pageHeader } from '#service-kit/pages/index.ts';
import { portalFrame } from '../frame.ts';
import type { Visitor } from '../guard.ts';

const title = 'Add a card';

function frame(visitor: Visitor, content: Html[]): Html {
  const breadcrumb = [{ label: 'Billing', href: '/client/billing/' }, { label: title }];
  return portalFrame({ visitor, title, current: 'billing', breadcrumb, isNarrow: true }, content);
}

/** On the way to the gateway. A form may not lead to another site, a link may. */
export function gatewayPage(visitor: Visitor, url: string, cardEntry: Payments['cardEntry']): Html {
  const site = 'site' in cardEntry ? cardEntry.site : 'the test gateway';
  const text = `Your card is typed on ${site}’s page; its number never comes to us.`;
  return frame(visitor, [
    pageHeader({ title, state: { tone: 'info', text } }),
    html`<p>${link(url, `Continue to ${site}`, { kind: 'primary' })} ${link('/client/billing/#cards', 'Back', { kind: 'button' })}</p>`,
  ]);
}

/** Back from the gateway: nothing is saved until the person confirms it here. */
export function cardReturnPage(visitor: Visitor, tenant: Tenant, setup: string): Html {
  const text = `The payment page has taken your card. Save it to pay for ${tenant.name}.`;
  return frame(visitor, [
    pageHeader({ title: 'Save your card', state: { tone: 'info', text } }),
    form(
      {
        action: '/client/billing/cards/return',
        csrfToken: visitor.csrfToken,
        submit: 'Save card',
        cancel: link(`/client/billing/?tenant=${tenant.id}`, 'Do not save it', { kind: 'button' }),
      },
      [hiddenField('tenant', tenant.id), hiddenField('setup', setup)],
    ),
  ]);
}
