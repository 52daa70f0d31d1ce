/**
 * Mail to people: one-time links and notices about their account.
 *
 * A mail is handed to the mail server at once and never queued in the database, because a queued mail would keep a
 * one-time link in readable form. A mail that fails is reported to the person who asked for it, or logged without its
 * text; the person asks again. Without a mail server nothing is sent, and each operation says what it does instead.
 */

import { randomUUID } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { oneLine } from '#common/text/index.ts';
import { describeTransportFailure } from '#common/transport/index.ts';
import { presentProvider } from '#service-kit/pages/index.ts';
import { catchMail } from './caught-mail.ts';

export { listCaughtMail, registerCaughtMail } from './caught-mail.ts';

export interface Mail {
  to: string;
  subject: string;
  text: string;
  /** Part of the Message-ID, for a mail that may be sent again; absent: a new one with each attempt. */
  id?: string;
}

/** How a one-time link reached its reader: mailed, shown to the operator who asked, or not at all. */
export type Delivery =
  | { kind: 'mailed'; to: string }
  | { kind: 'shown'; to: string; url: string }
  | { kind: 'failed'; to: string; reason: string };

export type Post = ReturnType<typeof createPost>;

/** Where a program is reached: its public URL, else the address that it listens on. */
export function ownUrl(settings: { publicUrl: string | null; host: string; port: number }): string {
  if (settings.publicUrl !== null) return settings.publicUrl;
  const isAny = settings.host === '0.0.0.0' || settings.host === '::';
  const host = isAny ? 'localhost' : settings.host;
  return `http://${host.includes(':') ? `[${host}]` : host}:${settings.port}`;
}

/** Where the reader of a mail gets help. */
function closing(): string {
  const support = presentProvider().links.find(({ label }) => label === 'Support');
  return support ? `\n\nQuestions? ${support.href.replace(/^mailto:/, '')}\n` : '';
}

export function createPost(options: {
  smtp: SmtpSettings | null;
  /** Mails are caught in this folder instead of sent. */
  folder: string | null;
  /** Where people reach this program; never taken from a request, whose Host header a stranger may choose. */
  baseUrl: () => string;
  reporter: Reporter;
}) {
  const { smtp, folder, reporter } = options;
  const pending = new Set<Promise<void>>();

  /** Null when the mail server took it; else the reason. */
  const send = async (mail: Mail): Promise<string | null> => {
    const { id = randomUUID(), ...given } = mail;
    const content = { ...given, text: `${given.text}${closing()}` };
    if (folder !== null)
      return catchMail(folder, { at: new Date().toISOString(), ...content, ...plainMail(content) });
    if (smtp === null) return 'no mail server is set up (SVC_SMTP_URL)';
    return sendBySmtp(smtp, { ...content, to: [mail.to], id });
  };
  const attempt = async (work: () => Promise<Mail | null>) => {
    try {
      const mail = await work();
      if (mail === null || (smtp === null && folder === null)) return;
      const fault = await send(mail);
      if (fault !== null) reporter.warn('a mail was not sent', { subject: mail.subject, why: fault });
    } catch (error) {
      reporter.warn('a mail was not sent', { why: describeError(error) });
    }
  };
  return {
    /** False when nothing can send mail. */
    canSend: smtp !== null || folder !== null,
    /** The absolute URL of a path of this program. */
    linkTo: (path: string) => `${options.baseUrl().replace(/\/+$/, '')}${path}`,
    send,
    /** Does work and sends its mail after the answer, so that how long an answer takes says nothing. Never rejects. */
    sendLater(work: () => Promise<Mail | null>) {
      const run: Promise<void> = attempt(work).finally(() => pending.delete(run));
      pending.add(run);
    },
    /** Resolves when nothing is on its way any more. */
    async idle() {
      while (pending.size > 0) await Promise.all(pending);
    },
  };
}

/** The mail server and the sender of mails. */
export interface SmtpSettings {
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

/** Hands a mail to the server. Null when that took it for at least one recipient; else the reason, in words of ours. */
export async function sendBySmtp(
  settings: SmtpSettings,
  mail: {
    to: readonly string[];
    subject: string;
    text: string;
    /** Part of the Message-ID; the same with every attempt, so that a server or a reader can drop the second. */
    id: string;
    /** Of the mail that this one answers, so that readers show them as one thread. */
    answersId?: string;
    headers?: Readonly<Record<string, string>>;
  },
): Promise<string | null> {
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
function plainMail({ subject, text }: { subject: string; text: string }) {
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
