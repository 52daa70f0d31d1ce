import { findUnknownNames } from '#common/config/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';
import { type OperationsSettings, operationsSettings } from '../config.ts';

/** Says at the start what of the settings is right for a trial and dangerous on the internet. */
export function warnOfSettings(
  settings: OperationsSettings,
  reporter: Reporter,
  environment: NodeJS.ProcessEnv = {},
): void {
  for (const { name, meant } of findUnknownNames(operationsSettings, environment, 'SVC_OPERATIONS_'))
    reporter.warn('there is no setting of this name', { setting: name, ...(meant && { meant }) });
  if (settings.demoWorld) return;
  if (settings.paymentGateway === 'test')
    reporter.warn('cards are test cards: customers can give themselves credit, and no money moves', {
      setting: 'SVC_PAYMENT_GATEWAY',
    });
  if (settings.smtpUrl === null && settings.mailFolder === null)
    reporter.warn('no mail server: people can neither be invited by customers nor reset their passwords', {
      setting: 'SVC_SMTP_URL',
    });
  else if (settings.publicUrl === null)
    reporter.warn('links in mails lead to the address that operations listens on', {
      setting: 'SVC_OPERATIONS_PUBLIC_URL',
    });
  if (settings.noticeUrl !== null && !isPrivateTransport(settings.noticeUrl))
    reporter.warn(
      settings.allowInsecureHttp
        ? 'notices of destroyed servers are sent without encryption'
        : 'notices of destroyed servers wait: the address of the monitor is not encrypted',
      { setting: settings.allowInsecureHttp ? 'SVC_ALLOW_INSECURE_HTTP' : 'SVC_OPERATIONS_NOTICE_URL' },
    );
  if (settings.publicUrl?.startsWith('https:') && settings.trustedProxies.length === 0)
    reporter.warn('no proxy is trusted: callers behind one share its address and its rate limit', {
      setting: 'SVC_OPERATIONS_TRUSTED_PROXIES',
    });
}
