/** Records of OpenSSH, nginx and the Apache HTTP Server. */
import { anyOf, type NvdRecord, record, runningOn } from './make-record.ts';

const ssh = 'openbsd:openssh';
const apache = 'apache:http_server';
const nginxOf = (edition: string, version: string, range = '') =>
  `cpe:2.3:a:f5:nginx:${version}:*:*:*:${edition}:*:*:*${range && ` ${range}`}`;

export const sshRecords: readonly NvdRecord[] = [
  record(
    'CVE-2024-6387',
    '2024-07-01',
    '3.1 8.1',
    'A race of the signal handler of sshd lets an unauthenticated attacker run code (regreSSHion).',
    [
      anyOf(`${ssh} <4.4`, `${ssh} >=8.6 <9.8`, `${ssh}:4.4:-`, `${ssh}:8.5:p1`, `${ssh}:9.8:-`),
      anyOf('o:debian:debian_linux:12.0', 'o:redhat:enterprise_linux:9.0'),
    ],
    { status: 'Modified' },
  ),
  record(
    'CVE-2023-38408',
    '2023-07-20',
    '3.1 9.8',
    'ssh-agent: the search path for PKCS#11 providers leads to remote code execution when an agent is forwarded.',
    [anyOf(`${ssh} <9.3`, `${ssh}:9.3:-`, `${ssh}:9.3:p1`), anyOf('o:fedoraproject:fedora:38')],
  ),
  record(
    'CVE-2023-48795',
    '2023-12-18',
    '3.1 5.9',
    'The SSH transport protocol with certain extensions allows truncation of the handshake (Terrapin).',
    [anyOf(`${ssh} <9.6`, 'putty:putty <0.80', 'proftpd:proftpd <=1.3.8b')],
    { status: 'Modified' },
  ),
  record(
    'CVE-2023-51385',
    '2023-12-18',
    '3.1 6.5',
    'Shell metacharacters in a user or host name can lead to command injection in ssh.',
    [anyOf(`${ssh} <9.6`), anyOf('o:debian:debian_linux:11.0')],
  ),
  record(
    'CVE-2023-51384',
    '2023-12-18',
    '3.1 5.5',
    'ssh-agent applies destination constraints to the first key of a PKCS#11 token only.',
    [anyOf(`${ssh} >=8.9 <9.6`)],
  ),
  record(
    'CVE-2023-25136',
    '2023-02-03',
    '3.1 6.5',
    'A double free in sshd of OpenSSH 9.1, during options.kex_algorithms.',
    [anyOf(`${ssh}:9.1`)],
  ),
  record(
    'CVE-2023-28531',
    '2023-03-17',
    '3.1 9.8',
    'ssh-add adds smartcard keys to ssh-agent without the intended constraints.',
    [anyOf(`${ssh} >=8.9 <9.3`)],
  ),
  record(
    'CVE-2021-41617',
    '2021-09-26',
    '3.1 7.0',
    'sshd does not set up supplementary groups for AuthorizedKeysCommand helpers.',
    [anyOf(`${ssh} >=6.2 <8.8`)],
  ),
  record(
    'CVE-2020-15778',
    '2020-07-24',
    '3.1 7.8',
    'scp allows command injection by the destination argument.',
    [anyOf(`${ssh} <=8.2`, `${ssh}:8.3:-`, `${ssh}:8.3:p1`)],
    { tags: ['disputed'] },
  ),
  record(
    'CVE-2018-15473',
    '2018-08-17',
    '3.0 5.3',
    'sshd allows user enumeration.',
    [anyOf(`${ssh} <=7.7`)],
    {
      status: 'Deferred',
    },
  ),
  record(
    'CVE-2016-20012',
    '2021-09-15',
    '3.1 5.3',
    'sshd lets an attacker test whether a user name and a public key are known.',
    [anyOf(`${ssh} <=8.7`)],
    { tags: ['disputed'] },
  ),
  record(
    'CVE-2025-26465',
    '2025-02-18',
    '3.1 6.8',
    'A machine in the middle can pass for the server when VerifyHostKeyDNS is on.',
    [anyOf(`${ssh}:6.8:p1`, `${ssh} >=6.9 <=9.8`, `${ssh}:9.9:-`, `${ssh}:9.9:p1`)],
  ),
  record('CVE-2025-26466', '2025-02-28', '3.1 5.9', 'sshd allocates memory for ping packets without bound.', [
    anyOf(
      ...['9.5:p1', '9.6:-', '9.6:p1', '9.7:-', '9.7:p1', '9.8:-', '9.8:p1', '9.9:-', '9.9:p1'].map(
        (version) => `${ssh}:${version}`,
      ),
    ),
  ]),
  record(
    'CVE-2024-39894',
    '2024-07-02',
    '3.1 7.5',
    'ObscureKeystrokeTiming does not hide the timing of keys.',
    [anyOf(`${ssh} >=9.5 <9.8`)],
  ),
  record(
    'CVE-2007-2768',
    '2007-05-21',
    '2.0 4.3',
    'With OPIE in PAM, sshd tells which users exist.',
    [anyOf(ssh)],
    {
      status: 'Deferred',
    },
  ),
  record(
    'CVE-2008-3844',
    '2008-08-27',
    '2.0 9.3',
    'Certain packages of OpenSSH for Red Hat Enterprise Linux were signed with a modified content.',
    [runningOn([`${ssh}:4.3p2`], ['o:redhat:enterprise_linux:4', 'o:redhat:enterprise_linux:5'])],
    { status: 'Deferred' },
  ),
];

export const nginxRecords: readonly NvdRecord[] = [
  record('CVE-2013-2028', '2013-07-20', '2.0 7.5', 'A crafted chunk size overflows a buffer on the stack.', [
    anyOf('f5:nginx >=1.3.9 <=1.4.0'),
  ]),
  record('CVE-2017-7529', '2017-07-13', '3.0 7.5', 'An integer overflow of the range filter leaks memory.', [
    anyOf('f5:nginx >=0.5.6 <1.12.1', 'f5:nginx >=1.13.0 <1.13.3'),
  ]),
  record(
    'CVE-2019-9511',
    '2019-08-13',
    '3.1 7.5',
    'HTTP/2: manipulation of window size and stream priority (Data Dribble).',
    [
      anyOf('apple:swiftnio >=1.0.0 <=1.4.0'),
      anyOf('f5:nginx >=1.9.5 <1.16.1', 'f5:nginx >=1.17.0 <=1.17.2'),
    ],
  ),
  record(
    'CVE-2021-23017',
    '2021-06-01',
    '3.1 7.7',
    'A crafted DNS answer overwrites one byte in the resolver.',
    [anyOf('f5:nginx >=0.6.18 <1.20.1', 'openresty:openresty <1.19.3.2')],
  ),
  record('CVE-2022-41741', '2022-10-19', '3.1 7.8', 'A crafted MP4 file corrupts the memory of a worker.', [
    anyOf(
      nginxOf('open_source', '*', '>=1.1.3 <=1.22.0'),
      nginxOf('plus', '*', '>=r22 <=r27'),
      nginxOf('open_source', '1.23.0'),
      nginxOf('open_source', '1.23.1'),
      nginxOf('open_source_subscription', 'r1'),
      nginxOf('open_source_subscription', 'r2'),
      'f5:nginx_ingress_controller >=1.9.0 <=1.12.4',
      'f5:nginx_ingress_controller >=2.0.0 <=2.4.0',
    ),
  ]),
  record(
    'CVE-2023-44487',
    '2023-10-10',
    '3.1 7.5',
    'HTTP/2: cancelled requests exhaust a server (Rapid Reset).',
    [anyOf('ietf:http:2.0'), anyOf('f5:nginx >=1.9.5 <=1.25.2', 'f5:nginx_plus >=r25 <r29')],
    { exploited: '2023-10-10' },
  ),
  record(
    'CVE-2024-7347',
    '2024-08-14',
    '3.1 4.7',
    'The MP4 module reads beyond a buffer.',
    [anyOf('f5:nginx_open_source >=1.5.13 <1.26.2', 'f5:nginx_open_source:1.27.0')],
    { scores: ['4.0 5.7'] },
  ),
  record(
    'CVE-2025-23419',
    '2025-02-05',
    '3.1 4.3',
    'TLS session resumption bypasses client certificates of another server block.',
    [anyOf('f5:nginx >=1.11.4 <1.26.3', 'f5:nginx >=1.27.0 <1.27.4')],
  ),
  record(
    'CVE-2009-4487',
    '2010-01-13',
    '2.0 6.8',
    'Escape sequences of a terminal are written to the log.',
    [anyOf('nginx:nginx:0.7.64')],
    { status: 'Deferred' },
  ),
];

export const httpdRecords: readonly NvdRecord[] = [
  record(
    'CVE-1999-0289',
    '1999-12-12',
    '2.0 5.0',
    'On Windows a dot behind a file name shows its source.',
    [runningOn([`${apache}:-`], ['cpe:2.3:o:microsoft:windows:-:*:*:*:*:*:x86:*'])],
    { status: 'Modified' },
  ),
  record(
    'CVE-2007-0086',
    '2007-01-05',
    '2.0 7.8',
    'Range headers with many ranges use much bandwidth.',
    [anyOf(`${apache}:-`)],
    { status: 'Deferred', tags: ['disputed'] },
  ),
  record(
    'CVE-2021-41773',
    '2021-10-05',
    '3.1 7.5',
    'Path traversal to files outside of the document root.',
    [anyOf(`${apache}:2.4.49`)],
    {
      exploited: '2021-11-03',
    },
  ),
  record(
    'CVE-2021-42013',
    '2021-10-07',
    '3.1 9.8',
    'The fix of CVE-2021-41773 was not complete.',
    [anyOf(`${apache}:2.4.49`, `${apache}:2.4.50`)],
    { exploited: '2021-11-03' },
  ),
  record(
    'CVE-2021-40438',
    '2021-09-16',
    '3.1 9.0',
    'mod_proxy forwards a request to a server that the client chose.',
    [anyOf(`${apache} <=2.4.48`)],
    {
      exploited: '2021-12-01',
    },
  ),
  record(
    'CVE-2021-44790',
    '2021-12-20',
    '3.1 9.8',
    'A crafted body overflows a buffer of the multipart parser of mod_lua.',
    [anyOf(`${apache} <=2.4.51`)],
  ),
  record('CVE-2023-25690', '2023-03-07', '3.1 9.8', 'mod_proxy with RewriteRule allows request smuggling.', [
    anyOf(`${apache} >=2.4.0 <=2.4.55`),
  ]),
  record('CVE-2017-15715', '2018-03-26', '3.0 8.1', 'FilesMatch with $ matches a newline in a file name.', [
    anyOf(`${apache} >=2.4.0 <=2.4.29`),
  ]),
  record('CVE-2017-9798', '2017-09-18', '3.0 7.5', 'An OPTIONS request leaks memory (Optionsbleed).', [
    anyOf(`${apache} <=2.2.34`, `${apache} >=2.4.0 <=2.4.27`),
  ]),
  record(
    'CVE-2024-38472',
    '2024-07-01',
    '3.1 7.5',
    'On Windows a crafted request leaks NTLM hashes to another server.',
    [runningOn([`${apache} >=2.4.0 <2.4.60`], ['o:microsoft:windows:-'])],
  ),
  record(
    'CVE-2019-0211',
    '2019-04-08',
    '3.1 7.8',
    'Code of a worker can run with the rights of the parent process.',
    [anyOf(`${apache} >=2.4.17 <=2.4.38`)],
    {
      exploited: '2021-11-03',
    },
  ),
  record(
    'CVE-2024-38475',
    '2024-07-01',
    '3.1 9.1',
    'mod_rewrite maps URLs to files that should not be reachable.',
    [anyOf(`${apache} >=2.4.0 <2.4.60`)],
    {
      exploited: '2025-05-01',
    },
  ),
  record('CVE-2014-3523', '2014-07-20', '2.0 5.0', 'WinNT MPM: crafted requests leak memory.', [
    runningOn(
      ['2.4.1', '2.4.2', '2.4.3', '2.4.4', '2.4.6', '2.4.7', '2.4.8', '2.4.9'].map(
        (version) => `${apache}:${version}`,
      ),
      ['o:microsoft:windows'],
    ),
  ]),
];
