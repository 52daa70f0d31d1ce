import { booleanSetting } from '#common/config/index.ts';

/** Off where a pooler hands one connection to several clients. */
export const preparedStatementsSetting = booleanSetting(
  'SVC_PREPARED_STATEMENTS',
  true,
  'Connections to PostgreSQL keep prepared statements, which saves most of the time of short ones. Set it to 0 behind a pooler in transaction mode.',
);
