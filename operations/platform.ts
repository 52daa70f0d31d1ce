/** What the features of operations stand on: settings, database, time, mail, sealed secrets, sessions. */

import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { webhookSecrets } from '#operations/webhooks/index.ts';
import { createAuditTrail } from '#service-kit/audit/index.ts';
import { createLimits } from '#service-kit/limits/index.ts';
import { createPost, ownUrl } from '#service-kit/mail/index.ts';
import { createNotifications } from '#service-kit/notifications/index.ts';
import { senderOf } from '#service-kit/pages/provider.ts';
import { createDatabase, type Database, type EmbeddedUse } from '#service-kit/postgres/index.ts';
import { createSecondFactors, factorSecrets } from '#service-kit/second-factors/index.ts';
import { createKeyWrapper, createSecrets } from '#service-kit/secrets/index.ts';
import { createSessions } from '#service-kit/sessions/index.ts';
import { signOnSecrets } from '#service-kit/sign-on/index.ts';
import { createSystem } from '#service-kit/system/index.ts';
import { type OperationsSettings, reporterOf, secretsKeyPrefix } from './config.ts';
import type { Overrides } from './overrides.ts';

export type Platform = ReturnType<typeof createPlatform>;

/** Every column that holds a sealed secret. */
export const operationsSecrets = [...webhookSecrets, ...factorSecrets, ...signOnSecrets];

/** The program's own folder in the data directory. */
export function programDir(settings: OperationsSettings): string {
  return resolve(settings.dataDir, 'operations');
}

export function createOperationsDatabase(
  settings: OperationsSettings,
  reporter: Reporter,
  { url = settings.databaseUrl, embedded = 'own' }: { url?: string | null; embedded?: EmbeddedUse } = {},
): Database {
  return createDatabase({
    program: 'operations',
    urlSetting: 'SVC_OPERATIONS_DATABASE_URL',
    url,
    programDir: programDir(settings),
    migrations: fileURLToPath(new URL('./migrations', import.meta.url)),
    // Well beyond any wait of usual work, and short enough that one locked account never holds every connection.
    lockTimeoutMs: 5_000,
    prepares: settings.preparedStatements,
    embedded,
    reporter,
  });
}

export function createPlatform(settings: OperationsSettings, overrides: Overrides) {
  const { reporter = reporterOf(settings), clock = systemClock } = overrides;
  // A process of pages runs the embedded database; others on its machine join it.
  const servesWeb = overrides.roles?.has('web') ?? true;
  const database =
    overrides.database ??
    createOperationsDatabase(settings, reporter, { embedded: servesWeb ? 'own' : 'join' });
  const db = () => database.db;
  const pool = () => database.pool;
  const secrets = createSecrets({
    db,
    program: 'operations',
    columns: operationsSecrets,
    reporter,
    wrapper:
      overrides.keyWrapper ??
      createKeyWrapper({
        settingPrefix: secretsKeyPrefix,
        file: settings.secretsKeyFile,
        command: settings.secretsKeyCommand,
        programDir: programDir(settings),
      }),
  });
  const { baseUrl = () => ownUrl(settings), signInFailuresMax: failuresMax } = overrides;
  const workers: (() => void)[] = [];
  return {
    settings,
    reporter,
    clock,
    database,
    db,
    pool,
    /** Sealed secrets; `secrets.part` starts after the database. */
    secrets,
    auditTrail: createAuditTrail({ db }),
    notifications: createNotifications({ pool, channel: 'svc_operations' }),
    /** Mails to people. */
    post: createPost({
      smtp: settings.smtpUrl === null ? null : { url: settings.smtpUrl, from: senderOf(settings) },
      folder: settings.mailFolder,
      baseUrl,
      reporter,
    }),
    /** Limits of how often something may happen, shared by all processes where a setting says so. */
    limits: createLimits({ url: settings.limitsUrl, program: 'operations', clock, reporter }),
    factors: createSecondFactors({ db, clock, secrets, issuer: settings.providerName }),
    /** Of people in portal and console. */
    sessions: createSessions({
      db,
      // Not the monitor's name: on one host, cookies do not tell ports apart.
      cookieName: 'svc_operations',
      isHttps: settings.publicUrl?.startsWith('https:') ?? false,
      ...(failuresMax !== undefined && { failuresMax }),
    }),
    /** Disks, loops and writes of the database. */
    system: createSystem({
      ...{ db, reader: () => database.reader, clock, reporter },
      folder: programDir(settings),
    }),
    /** Tells the job workers that a job is queued. */
    wake: () => {
      for (const wake of workers) wake();
    },
    /** Registers a job worker. */
    onWork: (listener: () => void) => workers.push(listener),
  };
}
