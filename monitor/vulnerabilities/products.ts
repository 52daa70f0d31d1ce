/**
 * The products whose versions are looked up (NET-2.6.3): how scans name them, how the vulnerability database does, and how they
 * write versions. A service of any other product is not assessed.
 */
import type { VersionScheme } from './matcher/version.ts';

export interface Product {
  /** The product's own key, in the database and in results. */
  key: string;
  /** For people. */
  title: string;
  scheme: VersionScheme;
  /** Numbers of a complete version: a server that shows fewer hides the rest. */
  numbersMin: number;
  /** Vendor and product of CPE names in the vulnerability database. It renamed some of them; old records keep old names. */
  names: readonly (readonly [vendor: string, product: string])[];
  /** The same of scans: nmap's CPE names. */
  scanNames: readonly (readonly [vendor: string, product: string])[];
  /** Software editions of CPE names with versions of their own: what is said of them is about another product. */
  otherEditions?: readonly string[];
  /** Names of its source packages in distributions. */
  packages: RegExp;
  /** Titles of the product itself in scans, in lower case: they name it where a scan has no CPE. */
  scanTitles: readonly string[];
}

export const products: readonly Product[] = [
  {
    key: 'openssh',
    title: 'OpenSSH',
    scheme: 'portable',
    numbersMin: 2,
    names: [['openbsd', 'openssh']],
    scanNames: [['openbsd', 'openssh']],
    packages: /^openssh$/,
    scanTitles: ['openssh'],
  },
  {
    key: 'nginx',
    title: 'nginx',
    scheme: 'dotted',
    numbersMin: 3,
    names: [
      ['f5', 'nginx'],
      ['nginx', 'nginx'],
      ['f5', 'nginx_open_source'],
      ['igor_sysoev', 'nginx'],
    ],
    scanNames: [
      ['igor_sysoev', 'nginx'],
      ['nginx', 'nginx'],
      ['f5', 'nginx'],
    ],
    otherEditions: ['plus', 'open_source_subscription'],
    packages: /^nginx$/,
    scanTitles: ['nginx'],
  },
  {
    key: 'httpd',
    title: 'Apache HTTP Server',
    scheme: 'dotted',
    numbersMin: 3,
    names: [['apache', 'http_server']],
    scanNames: [['apache', 'http_server']],
    packages: /^(apache2|httpd)$/,
    scanTitles: ['apache httpd', 'apache http server'],
  },
  {
    key: 'mysql',
    title: 'MySQL',
    scheme: 'tagged',
    numbersMin: 3,
    names: [
      ['oracle', 'mysql'],
      ['oracle', 'mysql_server'],
      ['mysql', 'mysql'],
    ],
    scanNames: [
      ['mysql', 'mysql'],
      ['oracle', 'mysql'],
    ],
    packages: /^mysql(-?\d+\.\d+)?$/,
    scanTitles: ['mysql'],
  },
  {
    key: 'mariadb',
    title: 'MariaDB',
    scheme: 'tagged',
    numbersMin: 3,
    names: [['mariadb', 'mariadb']],
    scanNames: [['mariadb', 'mariadb']],
    packages: /^mariadb(-?\d+(\.\d+)?)?$/,
    scanTitles: ['mariadb'],
  },
  {
    key: 'postgresql',
    title: 'PostgreSQL',
    scheme: 'dotted',
    numbersMin: 2,
    names: [['postgresql', 'postgresql']],
    scanNames: [['postgresql', 'postgresql']],
    packages: /^postgresql(-?\d+(\.\d+)?)?$/,
    scanTitles: ['postgresql', 'postgresql db'],
  },
  {
    key: 'redis',
    title: 'Redis',
    scheme: 'dotted',
    numbersMin: 3,
    names: [
      ['redis', 'redis'],
      ['redislabs', 'redis'],
    ],
    scanNames: [
      ['redislabs', 'redis'],
      ['redis', 'redis'],
    ],
    packages: /^redis\d*$/,
    scanTitles: ['redis', 'redis key-value store'],
  },
  {
    key: 'mongodb',
    title: 'MongoDB',
    scheme: 'dotted',
    numbersMin: 3,
    names: [['mongodb', 'mongodb']],
    scanNames: [['mongodb', 'mongodb']],
    packages: /^mongodb$/,
    scanTitles: ['mongodb', 'mongodb http console', 'mongodb simple rest interface'],
  },
  {
    key: 'memcached',
    title: 'memcached',
    scheme: 'dotted',
    numbersMin: 3,
    names: [
      ['memcached', 'memcached'],
      ['memcachedb', 'memcached'],
    ],
    scanNames: [['memcached', 'memcached']],
    packages: /^memcached$/,
    scanTitles: ['memcached'],
  },
  {
    key: 'vsftpd',
    title: 'vsftpd',
    scheme: 'dotted',
    numbersMin: 3,
    names: [
      ['vsftpd_project', 'vsftpd'],
      ['beasts', 'vsftpd'],
    ],
    scanNames: [['vsftpd', 'vsftpd']],
    packages: /^vsftpd$/,
    scanTitles: ['vsftpd'],
  },
  {
    key: 'proftpd',
    title: 'ProFTPD',
    scheme: 'lettered',
    numbersMin: 3,
    names: [
      ['proftpd', 'proftpd'],
      ['proftpd_project', 'proftpd'],
    ],
    scanNames: [['proftpd', 'proftpd']],
    packages: /^proftpd(-dfsg)?$/,
    scanTitles: ['proftpd'],
  },
];
