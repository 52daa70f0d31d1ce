import type { Delivery } from '#service-kit/mail/index.ts';
import { banner, type Content, codeBlock } from '#service-kit/pages/index.ts';

/** Says how a link that sets a password reached its reader; without a mail server, this page alone shows it. */
export function linkDelivery(delivery: Delivery): Content {
  switch (delivery.kind) {
    case 'mailed':
      return banner({
        tone: 'good',
        title: `A link was emailed to ${delivery.to}`,
        text: 'It sets the password, works once, and ends after 72 hours.',
      });
    case 'failed':
      return banner({
        tone: 'bad',
        title: `No link was emailed to ${delivery.to}`,
        text: `${delivery.reason}. Send a password link again from the list of people.`,
      });
    case 'shown':
      return [
        banner({
          tone: 'warn',
          title: `Hand this link over to ${delivery.to}`,
          text: 'No mail server is set up (SVC_SMTP_URL). The link sets the password, works once, ends after 72 hours, and is shown on this page only.',
        }),
        codeBlock({ label: `Link for ${delivery.to}`, code: delivery.url }),
      ];
  }
}
