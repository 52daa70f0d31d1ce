import { createReporter } from '#common/reporter/index.ts';
import type { BackupTarget } from '#service-kit/postgres/backup.ts';
import { readConfig } from '../config.ts';

export function backupTarget(): BackupTarget {
  const config = readConfig(process.env);
  return {
    program: 'monitor',
    urlSetting: 'SVC_MONITOR_DATABASE_URL',
    url: config.databaseUrl,
    programDir: config.programDir,
    reporter: createReporter({ program: 'monitor', format: config.logFormat, level: 'warn' }),
  };
}
