/** What the features of the monitor stand on: settings, database, time, mail, sealed secrets, sessions. */

import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import { createReporter } from '#common/reporter/index.ts';
import { createAuditTrail } from '#service-kit/audit/index.ts';
import { createLimits } from '#service-kit/limits/index.ts';
import { createPost, ownUrl } from '#service-kit/mail/index.ts';
import { senderOf } from '#service-kit/pages/provider.ts';
import { createDatabase } from '#service-kit/postgres/index.ts';
import { createSecondFactors, factorSecrets } from '#service-kit/second-factors/index.ts';
import { createKeyWrapper, createSecrets } from '#service-kit/secrets/index.ts';
import { createSessions } from '#service-kit/sessions/index.ts';
import { signOnSecrets } from '#service-kit/sign-on/index.ts';
import { createSystem } from '#service-kit/system/index.ts';
import { alertSecrets } from './alerts/index.ts';
import { type MonitorConfig, secretsKeyPrefix } from './config.ts';
import { handOffSecrets } from './hand-off/index.ts';
import { connectionSecrets } from './operations-client/index.ts';
import type { Overrides } from './overrides.ts';

export type Platform = ReturnType<typeof createPlatform>;

export const migrations = fileURLToPath(new URL('./migrations', import.meta.url));

/** Every column that holds a sealed secret. */
export const monitorSecrets = [
  ...connectionSecrets,
  ...alertSecrets,
  ...handOffSecrets,
  ...factorSecrets,
  ...signOnSecrets,
];

export function createPlatform(config: MonitorConfig, overrides: Overrides) {
  const { clock = systemClock } = overrides;
  const reporter =
    overrides.reporter ??
    createReporter({ program: 'monitor', format: config.logFormat, level: config.logLevel });
  const database =
    overrides.database ??
    createDatabase({
      program: 'monitor',
      urlSetting: 'SVC_MONITOR_DATABASE_URL',
      url: config.databaseUrl,
      readerUrl: config.readerDatabaseUrl,
      programDir: config.programDir,
      migrations,
      prepares: config.preparedStatements,
      ...(overrides.embedded && { embedded: overrides.embedded }),
      reporter,
    });
  const db = () => database.db;
  const secrets = createSecrets({
    db,
    program: 'monitor',
    columns: monitorSecrets,
    reporter,
    wrapper:
      overrides.keyWrapper ??
      createKeyWrapper({
        settingPrefix: secretsKeyPrefix,
        file: config.secretsKeyFile,
        command: config.secretsKeyCommand,
        programDir: config.programDir,
      }),
  });
  return {
    config,
    reporter,
    clock,
    database,
    db,
    /** Connections that only read. */
    reader: () => database.reader,
    /** Sealed secrets; `secrets.part` starts after the database. */
    secrets,
    sessions: createSessions({
      db,
      cookieName: 'svc_monitor',
      isHttps: config.publicUrl?.startsWith('https:') ?? false,
    }),
    /** Mails to people. */
    post: createPost({
      smtp: config.smtpUrl === null ? null : { url: config.smtpUrl, from: senderOf(config, 'monitor') },
      folder: config.mailFolder,
      baseUrl: () => ownUrl(config),
      reporter,
    }),
    /** Limits of how often something may happen, shared by all processes where a setting says so. */
    limits: createLimits({ url: config.limitsUrl, program: 'monitor', clock, reporter }),
    factors: createSecondFactors({ db, clock, secrets, issuer: `${config.providerName} monitor` }),
    auditTrail: createAuditTrail({ db }),
    /** Disks, loops and writes of the database. */
    system: createSystem({ db, reader: () => database.reader, clock, reporter, folder: config.programDir }),
  };
}
