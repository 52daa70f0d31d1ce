/** The settings of the log, the same in all three programs. */
import { choiceSetting } from '#common/config/index.ts';

export const logFormatSetting = choiceSetting(
  'SVC_LOG_FORMAT',
  ['text', 'json'],
  'text',
  'Format of the log on standard error.',
);

export const logLevelSetting = choiceSetting(
  'SVC_LOG_LEVEL',
  ['debug', 'info', 'warn', 'error'],
  'info',
  'Least severity that is logged.',
);
