import { type SmtpSettings, sendBySmtp } from '#service-kit/mail/index.ts';
import type { Notification } from './notification.ts';

/** The mail server and the sender of alerts. */
export type MailSettings = SmtpSettings;

/** Hands an alert to the mail server. Null when that took it for at least one recipient; else the reason. */
export function sendMail(
  settings: MailSettings,
  recipients: readonly string[],
  notification: Notification,
): Promise<string | null> {
  const { id, subject, text, transition } = notification;
  const headers = { 'X-Alert-Transition': transition };
  return sendBySmtp(settings, { to: recipients, subject, text, id, headers });
}
