import { oneLine } from '#common/text/index.ts';
import type { DueAlertMail } from '#operations/views/index.ts';
import type { Mail } from '#service-kit/mail/index.ts';

/** A mail in plain text, with a greeting, these paragraphs, and how to turn such mails off. A link stands alone as a paragraph. */
export function writeAlertMail(
  due: DueAlertMail,
  { subject, paragraphs }: { subject: string; paragraphs: readonly string[] },
): Mail {
  return {
    to: due.email,
    id: due.publicId,
    subject,
    text: `${[
      `Hello ${oneLine(due.personName)},`,
      ...paragraphs,
      `You receive this mail as a member of ${oneLine(due.organizationName)}. The settings of the server’s Protect page turn these mails off.`,
    ].join('\n\n')}\n`,
  };
}
