import { oneLine } from '#common/text/index.ts';
import { describeTransportFailure } from '#common/transport/index.ts';

/** The mail server and the sender of mails. */
export interface SmtpSettings {
  /** `smtp://user:password@host:port` or `smtps://…`. Never logged. */
  url: string;
  from: string;
}

export interface SmtpMail {
  to: readonly string[];
  subject: string;
  text: string;
  /** Part of the Message-ID; the same with every attempt, so that a server or a reader can drop the second. */
  id: string;
  /** Of the mail that this one answers, so that readers show them as one thread. */
  answersId?: string;
  headers?: Readonly<Record<string, string>>;
}

const timeouts = {
  connectionTimeout: 10_000,
  greetingTimeout: 10_000,
  socketTimeout: 15_000,
  dnsTimeout: 5_000,
};

/** Hands a mail to the server. Null when that took it for at least one recipient; else the reason, in words of ours. */
export async function sendBySmtp(settings: SmtpSettings, mail: SmtpMail): Promise<string | null> {
  // Loaded with the first mail: most processes send none.
  const { createTransport } = await import('nodemailer');
  const transport = createTransport({
    url: settings.url,
    ...timeouts,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const messageId = (id: string) => `<${id}@${domainOf(settings.from)}>`;
  try {
    await transport.sendMail({
      from: settings.from,
      // As objects: the text of an address is never read as a list of addresses.
      to: mail.to.map((address) => ({ name: '', address })),
      ...plainMail(mail),
      messageId: messageId(mail.id),
      ...(mail.answersId
        ? { inReplyTo: messageId(mail.answersId), references: messageId(mail.answersId) }
        : {}),
      headers: { 'Auto-Submitted': 'auto-generated', ...mail.headers },
    });
    return null;
  } catch (error) {
    return describe(error);
  } finally {
    transport.close();
  }
}

/**
 * A mail's subject in one line, and its text, both without characters that are not seen or turn the direction of writing:
 * names of people, hosts and services stand in them.
 */
export function plainMail({ subject, text }: { subject: string; text: string }) {
  return { subject: oneLine(subject), text: text.split('\n').map(oneLine).join('\n') };
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
      return `the mail server could not be reached${responseCode ? status : `: ${describeConnection(error)}`}`;
  }
}

/** The mail library replaces the code of the socket's error with its own, so the code is found by the message. */
function describeConnection(error: unknown): string {
  const { message } = error as Error;
  const code = /self-signed certificate|unable to (get|verify)/.test(message)
    ? 'DEPTH_ZERO_SELF_SIGNED_CERT'
    : /certificate has expired/.test(message)
      ? 'CERT_HAS_EXPIRED'
      : /altnames/.test(message)
        ? 'ERR_TLS_CERT_ALTNAME_INVALID'
        : /wrong version number|packet length too long/.test(message)
          ? 'ERR_SSL_WRONG_VERSION_NUMBER'
          : /\bE[A-Z]{5,}\b/.exec(message)?.[0];
  return describeTransportFailure({ code });
}
