/** Records of vsftpd and ProFTPD. */
import { anyOf, type NvdRecord, record } from './make-record.ts';

const pro = 'proftpd:proftpd';

export const ftpRecords: readonly NvdRecord[] = [
  record(
    'CVE-2011-2523',
    '2019-11-27',
    '3.1 9.8',
    'An archive of vsftpd 2.3.4 contained a backdoor on port 6200.',
    [anyOf('vsftpd_project:vsftpd:2.3.4')],
  ),
  record(
    'CVE-2011-0762',
    '2011-03-02',
    '2.0 4.0',
    'Crafted glob expressions exhaust the processor.',
    [anyOf('beasts:vsftpd <=2.3.2')],
    { status: 'Deferred' },
  ),
  record('CVE-2015-1419', '2015-01-28', '2.0 5.0', 'deny_file does not deny all names of a file.', [
    anyOf('vsftpd_project:vsftpd <=3.0.2'),
  ]),
  record(
    'CVE-2021-3618',
    '2022-03-23',
    '3.1 7.4',
    'TLS traffic can be redirected to another service (ALPACA).',
    [
      anyOf('f5:nginx <1.21.0', 'vsftpd_project:vsftpd <3.0.4', 'sendmail:sendmail <8.17'),
      anyOf('o:fedoraproject:fedora:33'),
    ],
  ),
  record('CVE-2021-30047', '2023-08-22', '3.1 7.5', 'A number of connections exhausts the server.', [
    anyOf('vsftpd_project:vsftpd:3.0.3'),
  ]),
  record('CVE-2015-3306', '2015-05-18', '2.0 10.0', 'mod_copy lets anyone read and write files.', [
    anyOf(`${pro}:1.3.5`),
  ]),
  record('CVE-2019-12815', '2019-07-19', '3.1 9.8', 'mod_copy copies files in spite of limits.', [
    anyOf(`${pro} <=1.3.5b`),
  ]),
  record(
    'CVE-2019-18217',
    '2019-10-21',
    '3.1 7.5',
    'A request to an overlong header ends in an endless loop.',
    [
      anyOf(
        `${pro} <=1.3.5`,
        ...['1.3.6:-', '1.3.6:a', '1.3.6:rc1', '1.3.6:rc2', '1.3.6:rc3', '1.3.6:rc4', '1.3.7:rc1'].map(
          (version) => `${pro}:${version}`,
        ),
      ),
    ],
  ),
  record('CVE-2010-4221', '2010-11-09', '2.0 10.0', 'TELNET IAC sequences overflow a buffer on the stack.', [
    anyOf(`${pro}:1.3.2:rc3`, `${pro}:1.3.2`, `${pro}:1.3.3`, `${pro}:1.3.3:a`, `${pro}:1.3.3:b`),
  ]),
  record('CVE-2011-4130', '2011-12-06', '2.0 9.0', 'Response pools are used after they were freed.', [
    anyOf(`${pro} <1.3.3g`),
  ]),
  record('CVE-2023-51713', '2023-12-22', '3.1 7.5', 'make_ftp_cmd reads one byte beyond a buffer.', [
    anyOf(`${pro} <1.3.8a`),
  ]),
  record('CVE-2024-48651', '2024-11-29', '3.1 7.5', 'mod_sql gives a user without groups the group 0.', [
    anyOf(`${pro} <1.3.8c`),
  ]),
];
