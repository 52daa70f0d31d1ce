import { oneLine } from '#common/text/index.ts';
import type { Mail } from '#service-kit/mail/index.ts';

/** For a person whose account can from now on be used from the other console. */
export function accountLinkedMail(
  reader: { email: string; name: string },
  other: string,
  resetUrl: string,
): Mail {
  // An address of the other program: a line break in it would be a paragraph of its own.
  const account = oneLine(other);
  const paragraphs = [
    `Hello ${oneLine(reader.name)},`,
    `your account was linked with the account ${account} of the other console. Who is signed in there as ${account} is signed in here as you.`,
    'If this was not you, set a new password now and ask an operator to remove the link:',
    resetUrl,
  ];
  return { to: reader.email, subject: 'Your account was linked', text: `${paragraphs.join('\n\n')}\n` };
}
