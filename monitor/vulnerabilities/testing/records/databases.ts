/** Records of MySQL, MariaDB, PostgreSQL, Redis, MongoDB and memcached. */
import { anyOf, match, type NvdRecord, record, runningOn } from './make-record.ts';

const mysql = 'oracle:mysql';
const maria = 'mariadb:mariadb';
const postgres = 'postgresql:postgresql';
const redis = 'redis:redis';
const mongo = 'mongodb:mongodb';
const cached = 'memcached:memcached';
/** Ranges of one product, each `first` to before `fixed`. */
const branches = (name: string, ...ranges: [first: string, fixed: string][]) =>
  ranges.map(([first, fixed]) => `${name} >=${first} <${fixed}`);

/** Single versions of a branch. */
const exactly = (name: string, branch: string, last: string) =>
  last.split(' ').map((one) => `${name}:${branch}.${one}`);

export const mysqlRecords: readonly NvdRecord[] = [
  record(
    'CVE-2012-2122',
    '2012-06-26',
    '2.0 5.1',
    'A wrong password is accepted about once in 256 attempts.',
    [
      anyOf(...exactly(mysql, '5.1', '51 52 52:sp1 53 54 55 56 57 58 59 60 61')),
      anyOf(...exactly(mysql, '5.5', '10 11 12 13 14 15 16 17 18 19 20 21')),
      anyOf(...exactly(mysql, '5.6', '2 3 4 5')),
      anyOf(...exactly(maria, '5.1', '41 42 44 47 49 50 51 53 55 60 61')),
      anyOf(...exactly(maria, '5.2', '0 1 2 3 4 5 6 7 8 9 10 11')),
      anyOf(...exactly(maria, '5.3', '0 1 2 3 4 5 6')),
      anyOf(...exactly(maria, '5.5', '20 21')),
    ],
    { status: 'Modified' },
  ),
  record(
    'CVE-2016-6662',
    '2016-09-20',
    '3.0 9.8',
    'General log settings let a user write the configuration and run code as root.',
    [
      anyOf(`${mysql} >=5.5.0 <=5.5.52`, `${mysql} >=5.6.0 <=5.6.33`, `${mysql} >=5.7.0 <=5.7.15`),
      anyOf(...branches(maria, ['5.5.0', '5.5.51'], ['10.0.0', '10.0.27'], ['10.1.0', '10.1.17'])),
    ],
  ),
  record('CVE-2024-20961', '2024-01-16', '3.1 6.5', 'MySQL Server, optimizer: a user can crash the server.', [
    anyOf(`${mysql}_server >=8.0.0 <=8.0.35`, `${mysql}_server >=8.1.0 <=8.2.0`),
  ]),
  record(
    'CVE-2023-21912',
    '2023-04-18',
    '3.1 7.5',
    'MySQL Server, privileges: an unauthenticated attacker can crash the server.',
    [anyOf(`${mysql} >=5.7.0 <=5.7.41`, `${mysql} >=8.0.0 <=8.0.30`)],
  ),
  record(
    'CVE-2023-22084',
    '2023-10-17',
    '3.1 4.9',
    'InnoDB: a user with high privileges can crash the server.',
    [
      anyOf(`${mysql} >=5.7.0 <=5.7.43`, `${mysql} >=8.0.0 <=8.0.34`, `${mysql}:8.1.0`),
      anyOf(
        ...branches(
          maria,
          ['10.4.0', '10.4.32'],
          ['10.5.0', '10.5.23'],
          ['10.6.0', '10.6.16'],
          ['10.11.0', '10.11.6'],
        ),
      ),
    ],
  ),
  record('CVE-2021-27928', '2021-03-19', '3.1 7.2', 'wsrep_provider lets a user with SUPER run commands.', [
    anyOf(
      ...branches(
        maria,
        ['10.2.0', '10.2.37'],
        ['10.3.0', '10.3.28'],
        ['10.4.0', '10.4.18'],
        ['10.5.0', '10.5.9'],
      ),
    ),
  ]),
  record('CVE-2022-27376', '2022-04-12', '3.1 7.5', 'Item_args::walk_arg uses memory after it was freed.', [
    anyOf(
      ...branches(
        maria,
        ['10.2.0', '10.2.44'],
        ['10.3.0', '10.3.35'],
        ['10.4.0', '10.4.25'],
        ['10.6.0', '10.6.8'],
      ),
    ),
  ]),
];

export const postgresRecords: readonly NvdRecord[] = [
  record(
    'CVE-2018-1058',
    '2018-03-02',
    '3.0 8.8',
    'Objects in the schema public can take over names in queries of others.',
    [
      anyOf(
        ...branches(
          postgres,
          ['9.3', '9.3.22'],
          ['9.4', '9.4.17'],
          ['9.5', '9.5.12'],
          ['9.6', '9.6.8'],
          ['10', '10.3'],
        ),
      ),
    ],
  ),
  record(
    'CVE-2019-9193',
    '2019-04-01',
    '3.0 7.2',
    'COPY TO/FROM PROGRAM runs commands for superusers.',
    [anyOf(`${postgres} >=9.3 <=11.2`)],
    { tags: ['disputed'] },
  ),
  record(
    'CVE-2022-1552',
    '2022-08-31',
    '3.1 8.8',
    'Autovacuum, REINDEX and others activate protections too late.',
    [
      anyOf(
        ...branches(
          postgres,
          ['10.0', '10.21'],
          ['11.0', '11.16'],
          ['12.0', '12.11'],
          ['13.0', '13.7'],
          ['14.0', '14.3'],
        ),
      ),
    ],
  ),
  record(
    'CVE-2023-5869',
    '2023-12-10',
    '3.1 8.8',
    'An integer overflow in array modification lets a user run code.',
    [
      anyOf(
        ...branches(
          postgres,
          ['11.0', '11.22'],
          ['12.0', '12.17'],
          ['13.0', '13.13'],
          ['14.0', '14.10'],
          ['15.0', '15.5'],
        ),
        `${postgres}:16.0`,
      ),
    ],
  ),
  record(
    'CVE-2024-10979',
    '2024-11-14',
    '3.1 8.8',
    'PL/Perl can change environment variables of the server process.',
    [
      anyOf(
        ...branches(
          postgres,
          ['12.0', '12.21'],
          ['13.0', '13.17'],
          ['14.0', '14.14'],
          ['15.0', '15.9'],
          ['16.0', '16.5'],
        ),
        `${postgres}:17.0`,
        `${postgres}:17:beta1`,
      ),
    ],
  ),
  record(
    'CVE-2013-1899',
    '2013-04-04',
    '2.0 6.5',
    'A database name that begins with a hyphen is read as an option.',
    [anyOf(...branches(postgres, ['9.0', '9.0.13'], ['9.1', '9.1.9'], ['9.2', '9.2.4']))],
  ),
];

export const redisRecords: readonly NvdRecord[] = [
  record(
    'CVE-2022-0543',
    '2022-02-18',
    '3.1 10.0',
    'Packages of Debian let Lua scripts out of the sandbox.',
    [
      runningOn(
        [`${redis}:-`],
        [
          ...[
            'cpe:2.3:o:canonical:ubuntu_linux:20.04:*:*:*:lts:*:*:*',
            'cpe:2.3:o:canonical:ubuntu_linux:21.10:*:*:*:-:*:*:*',
          ],
          ...['9.0', '10.0', '11.0'].map((release) => `o:debian:debian_linux:${release}`),
        ],
      ),
    ],
    { exploited: '2022-03-28' },
  ),
  record(
    'CVE-2023-28856',
    '2023-04-18',
    '3.1 6.5',
    'HINCRBYFLOAT can make a hash field that crashes the server.',
    [anyOf(`${redis} <6.0.19`, ...branches(redis, ['6.2.0', '6.2.12'], ['7.0.0', '7.0.11']))],
  ),
  record('CVE-2021-32626', '2021-10-04', '3.1 8.8', 'Crafted Lua scripts overflow a stack.', [
    anyOf(...branches(redis, ['2.6.0', '5.0.14'], ['6.0.0', '6.0.16'], ['6.2.0', '6.2.6'])),
  ]),
  record(
    'CVE-2024-31449',
    '2024-10-07',
    '3.1 8.8',
    'A crafted Lua script overflows a buffer of the bit library.',
    [anyOf(...branches(redis, ['2.6', '6.2.16'], ['7.0.0', '7.2.6'], ['7.4.0', '7.4.1']))],
  ),
  record(
    'CVE-2025-49844',
    '2025-10-03',
    '3.1 9.9',
    'A crafted Lua script uses memory after it was freed.',
    [
      anyOf(
        'redislabs:redis <6.2.20',
        ...branches(redis, ['7.2.0', '7.2.11'], ['7.4.0', '7.4.6'], ['8.2.0', '8.2.2']),
      ),
    ],
    { status: 'Modified' },
  ),
];

export const mongoRecords: readonly NvdRecord[] = [
  record('CVE-2020-7921', '2020-05-06', '3.1 4.6', 'Restrictions of a user by IP address can be bypassed.', [
    anyOf(...branches(mongo, ['3.6.0', '3.6.18'], ['4.0.0', '4.0.15'], ['4.2.0', '4.2.3']), `${mongo}:4.3.0`),
  ]),
  record(
    'CVE-2019-20925',
    '2020-11-24',
    '3.1 7.5',
    'A crafted message of the wire protocol exhausts memory.',
    [
      anyOf(
        ...branches(mongo, ['3.4.0', '3.4.24'], ['3.6.0', '3.6.15'], ['4.0.0', '4.0.13'], ['4.2.0', '4.2.1']),
      ),
    ],
  ),
  record('CVE-2024-1351', '2024-03-07', '3.1 9.8', 'Certificates of peers may not be validated.', [
    anyOf(
      ...branches(mongo, ['4.4.0', '4.4.29'], ['5.0.0', '5.0.25'], ['6.0.0', '6.0.14'], ['7.0.0', '7.0.6']),
    ),
  ]),
  record(
    'CVE-2023-1409',
    '2023-08-23',
    '3.1 7.5',
    'On Windows and macOS client certificates are not checked.',
    [
      runningOn(branches(mongo, ['4.4.0', '4.4.23'], ['5.0.0', '5.0.19'], ['6.0.0', '6.0.7']), [
        'o:apple:macos:-',
        'o:microsoft:windows:-',
      ]),
    ],
  ),
  record(
    'CVE-2025-14847',
    '2025-12-19',
    '3.1 7.5',
    'Length fields of compressed messages let a client read memory of the server.',
    [
      anyOf(
        ...branches(
          mongo,
          ['4.4.0', '4.4.30'],
          ['5.0.0', '5.0.32'],
          ['6.0.0', '6.0.27'],
          ['7.0.0', '7.0.28'],
          ['8.0.0', '8.0.17'],
        ),
      ),
    ],
    { exploited: '2025-12-29', scores: ['4.0 8.7'] },
  ),
];

export const memcachedRecords: readonly NvdRecord[] = [
  record(
    'CVE-2016-8704',
    '2017-01-06',
    '3.0 9.8',
    'Appending to a value overflows a number and then the heap.',
    [anyOf(`${cached} <=1.4.31`)],
  ),
  record(
    'CVE-2011-4971',
    '2013-12-12',
    '2.0 5.0',
    'A large body length crashes the server.',
    [anyOf(`${cached} <1.4.17`)],
    {
      status: 'Deferred',
    },
  ),
  record('CVE-2018-1000115', '2018-03-05', '3.0 7.5', 'UDP is on by default and amplifies attacks.', [
    anyOf(`${cached}:1.5.5`),
  ]),
  record('CVE-2019-11596', '2019-04-29', '3.0 7.5', 'lru mode and lru temp_ttl dereference a null pointer.', [
    anyOf(`${cached} <1.5.14`),
  ]),
  record('CVE-2019-15026', '2019-08-30', '3.1 7.5', 'conn_to_str reads beyond a buffer for UNIX sockets.', [
    anyOf(`${cached}:1.5.16`),
  ]),
  record('CVE-2020-10931', '2020-03-24', '3.1 7.5', 'A crafted binary protocol header overflows a buffer.', [
    anyOf(`${cached} >=1.6.0 <1.6.2`),
  ]),
  record(
    'CVE-2023-46852',
    '2023-10-27',
    '3.1 7.5',
    'Many spaces after "get" in proxy mode overflow a buffer.',
    [anyOf(`${cached} <1.6.22`)],
  ),
];

/** With a negated node, of which the database has hardly any: the node is made up. */
export const negated: NvdRecord = record(
  'CVE-2024-31228',
  '2024-10-07',
  '3.1 5.5',
  'Long patterns of KEYS and SCAN exhaust the stack.',
  [
    {
      operator: 'AND',
      nodes: [
        {
          operator: 'OR',
          negate: false,
          cpeMatch: [match(`${redis} >=2.2.5 <6.2.16`), match(`${redis} >=7.0.0 <7.2.6`)],
        },
        {
          operator: 'OR',
          negate: true,
          cpeMatch: [{ ...match(`${redis} >=7.2.0 <7.2.2`), vulnerable: false }],
        },
      ],
    },
  ],
);
