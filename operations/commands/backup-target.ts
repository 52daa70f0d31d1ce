import type { BackupTarget } from '#service-kit/postgres/backup.ts';
import { readOperationsSettings, reporterOf } from '../config.ts';
import { programDir } from '../platform.ts';

export function backupTarget(): BackupTarget {
  const settings = readOperationsSettings();
  return {
    program: 'operations',
    urlSetting: 'SVC_OPERATIONS_DATABASE_URL',
    url: settings.databaseUrl,
    programDir: programDir(settings),
    reporter: reporterOf({ ...settings, logLevel: 'warn' }),
  };
}
