/**
 * Records of the vulnerability database for tests and the demo, in its format: a selection from public knowledge, with the numbers
 * and criteria of the real ones as far as the products are concerned. Summaries are ours, other products are left out, and times
 * are made up. They are no source of facts about vulnerabilities.
 */
import {
  memcachedRecords,
  mongoRecords,
  mysqlRecords,
  negated,
  postgresRecords,
  redisRecords,
} from './databases.ts';
import { ftpRecords } from './ftp.ts';
import { record } from './make-record.ts';
import { httpdRecords, nginxRecords, sshRecords } from './shells-and-web.ts';

export type { NvdRecord } from './make-record.ts';

/** A record that was taken back; another CVE describes the fault. */
const rejected = record(
  'CVE-2023-5129',
  '2023-09-25',
  '3.1 10.0',
  'Rejected reason: duplicate of CVE-2023-4863.',
  [],
  {
    status: 'Rejected',
  },
);

export const records = [
  ...sshRecords,
  ...nginxRecords,
  ...httpdRecords,
  ...mysqlRecords,
  ...postgresRecords,
  ...redisRecords,
  ...mongoRecords,
  ...memcachedRecords,
  ...ftpRecords,
  negated,
  rejected,
];
