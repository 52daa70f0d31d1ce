/** What people are mailed about their account. Plain text; the link stands alone on its line. */
import { oneLine } from '#common/text/index.ts';
import type { Delivery, Mail } from '#service-kit/mail/index.ts';
import { banner, type Content, codeBlock, formatTime } from '#service-kit/pages/index.ts';

interface Reader {
  email: string;
  name: string;
}

/** Subjects are ours alone: a name in one would let its owner write the first thing that a stranger reads. */
function mailOf(reader: Reader, subject: string, paragraphs: readonly string[]): Mail {
  const greeting = reader.name === '' ? 'Hello,' : `Hello ${oneLine(reader.name)},`;
  return { to: reader.email, subject, text: `${[greeting, ...paragraphs].join('\n\n')}\n` };
}

/** For a person whose account an operator made, or who is to get a new password. */
export function accessLinkMail(reader: Reader, url: string, lifetime: string): Mail {
  return mailOf(reader, 'Set your password', [
    `set the password of your account by this link. It works once, for ${lifetime}:`,
    url,
    'If you did not expect this mail, ignore it.',
  ]);
}

export function resetMail(reader: Reader, url: string): Mail {
  return mailOf(reader, 'Reset your password', [
    'a new password was requested for your account. Set it by this link. It works once, for one hour:',
    url,
    'If you did not request it, ignore this mail. Your password stays as it is.',
  ]);
}

/** To an address that a customer typed. `product` is ours, the organization's name is the customer's. */
export function invitationMail(email: string, product: string, organization: string, url: string): Mail {
  return mailOf({ email, name: '' }, `Invitation to ${product}`, [
    `you are invited to join the organization “${oneLine(organization)}” at ${product}. Accept by this link. It works once, for seven days:`,
    url,
    'If you do not know this organization, ignore this mail.',
  ]);
}

export function addedAsOwnerMail(reader: Reader, organization: string, url: string): Mail {
  return mailOf(reader, 'You are the owner of an organization', [
    `you are now the owner of the organization “${oneLine(organization)}”. Sign in with the password that you have:`,
    url,
  ]);
}

export function passwordChangedMail(reader: Reader, resetUrl: string, nowMs: number): Mail {
  return mailOf(reader, 'Your password was changed', [
    `the password of your account was changed at ${formatTime(nowMs)}. Other sessions were ended.`,
    'If this was not you, set a new password now:',
    resetUrl,
  ]);
}

export function newBrowserMail(
  reader: Reader,
  from: { browser: string; source: string; atMs: number },
  resetUrl: string,
): Mail {
  return mailOf(reader, 'New sign-in to your account', [
    `we noticed a sign-in from a new browser: ${oneLine(from.browser)}, address ${from.source}, ${formatTime(from.atMs)}.`,
    'If this was you, no action is needed. If not, set a new password now. That ends all sessions:',
    resetUrl,
  ]);
}

export function recoveryUsedMail(reader: Reader, left: number, resetUrl: string): Mail {
  return mailOf(reader, 'A recovery code was used', [
    `one of your recovery codes was used to sign in or to confirm an action. ${left === 1 ? 'One is' : `${left} are`} left.`,
    'If this was not you, set a new password now:',
    resetUrl,
  ]);
}

export function factorsChangedMail(reader: Reader, what: string, resetUrl: string): Mail {
  return mailOf(reader, 'Your second factor was changed', [
    `${what}.`,
    'If this was not you, set a new password now. That ends all sessions:',
    resetUrl,
  ]);
}

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
