import { findUnknownNames } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { runUntilSignal, sayFatal } from '#common/lifecycle/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';
import { compose, partsOf } from '../composition.ts';
import {
  type OperationsSettings,
  operationsSettings,
  readOperationsSettings,
  requirePaymentGateway,
} from '../config.ts';
import { programDir } from '../platform.ts';
import type { OperationsRole } from '../roles.ts';
import { createDemoWorld } from './seed-demo/index.ts';

/** Runs the program in these roles, or in all, until a signal; resolves with its exit code. */
export async function serve(only?: ReadonlySet<OperationsRole>): Promise<number> {
  try {
    const given = readOperationsSettings();
    const settings = { ...given, paymentGateway: requirePaymentGateway(given) };
    if (only && settings.demoWorld)
      throw new CodedError('config.invalid', 'A demo world runs in one process: leave out --only.');
    const operations = await compose(settings, only ? { roles: only } : {});
    const { reporter, clock } = operations;
    warnOfSettings(settings, reporter, process.env);
    const http = await operations.createServer();
    const demoWorld = createDemoWorld({
      features: operations,
      reporter,
      clock,
      driver: settings.hypervisor,
      dir: programDir(settings),
    });
    const parts = partsOf(operations, http, settings.demoWorld ? [demoWorld] : []);
    return await runUntilSignal(parts, reporter, () =>
      reporter.info('operations is ready', { url: http.url, ...(only && { roles: [...only].join(',') }) }),
    );
  } catch (error) {
    sayFatal(error);
    return 1;
  }
}

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
