import { randomUUID } from 'node:crypto';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { presentProvider } from '#service-kit/pages/index.ts';
import { catchMail } from './catch-mail.ts';
import { plainMail, type SmtpSettings, sendBySmtp } from './send-by-smtp.ts';

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

export interface PostOptions {
  smtp: SmtpSettings | null;
  /** Mails are caught in this folder instead of sent. */
  folder: string | null;
  /** Where people reach this program; never taken from a request, whose Host header a stranger may choose. */
  baseUrl: () => string;
  reporter: Reporter;
}

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

export function createPost(options: PostOptions) {
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
