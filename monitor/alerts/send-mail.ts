import { createTransport } from 'nodemailer';
import type { Notification } from './notification.ts';

/** The mail server and who mails come from. */
export interface MailSettings {
  /** `smtp://user:password@host:port` or `smtps://…`. Never logged. */
  url: string;
  from: string;
}

const timeouts = {
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 15_000,
  dnsTimeout: 5_000,
};

/** Hands a mail to the server. Null when that took it for at least one recipient; else why not, in words of ours. */
export async function sendMail(
  settings: MailSettings,
  recipients: readonly string[],
  notification: Notification,
): Promise<string | null> {
  const transport = createTransport({
    url: settings.url,
    ...timeouts,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    await transport.sendMail({
      from: settings.from,
      to: [...recipients],
      subject: notification.subject,
      text: notification.text,
      // The same with every attempt: a server or a reader that has it already may drop the second.
      messageId: `<${notification.id}@${domainOf(settings.from)}>`,
      headers: { 'Auto-Submitted': 'auto-generated', 'X-Alert-Transition': notification.transition },
    });
    return null;
  } catch (error) {
    return describe(error);
  } finally {
    transport.close();
  }
}

function domainOf(from: string): string {
  return /@([a-z0-9.-]+)/i.exec(from)?.[1] ?? 'localhost';
}

/** Servers repeat what they were told, so their own words are not kept. */
function describe(error: unknown): string {
  const { code, responseCode } = error as { code?: string; responseCode?: number };
  const status = responseCode ? ` (${responseCode})` : '';
  switch (code) {
    case 'EAUTH':
      return `the mail server did not accept the sign-in${status}`;
    case 'EENVELOPE':
      return `the mail server refused the sender or every recipient${status}`;
    case 'EMESSAGE':
      return `the mail server refused the message${status}`;
    case 'ETLS':
      return 'no encrypted connection to the mail server';
    case 'EDNS':
      return 'the name of the mail server does not resolve';
    default:
      return `the mail server could not be reached${status}`;
  }
}
