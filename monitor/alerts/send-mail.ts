import { type SmtpSettings, sendBySmtp } from '#service-kit/mail/index.ts';
import type { Notification } from './notification.ts';

/** The mail server, and the sender address of alerts. */
export type MailSettings = SmtpSettings;

/** Sends an alert to the mail server. Null when it accepted at least one recipient, otherwise the reason. */
export function sendMail(
  settings: MailSettings,
  recipients: readonly string[],
  notification: Notification,
): Promise<string | null> {
  const { id, subject, text, transition } = notification;
  const headers = { 'X-Alert-Transition': transition };
  return sendBySmtp(settings, { to: recipients, subject, text, id, headers });
}
