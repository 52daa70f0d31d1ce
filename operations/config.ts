/** Settings of operations. This is the only place of the program that reads the environment. */
import {
  booleanSetting,
  choiceSetting,
  databaseUrlSetting,
  decimalSetting,
  hostListSetting,
  httpUrlSetting,
  integerSetting,
  optionalTextSetting,
  prefixListSetting,
  readSettings,
  type SettingValues,
  smtpUrlSetting,
  textSetting,
} from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { createReporter, type Reporter } from '#common/reporter/index.ts';
import { logFormatSetting, logLevelSetting } from '#common/reporter/settings.ts';
import { allowInsecureHttpSetting } from '#common/transport/index.ts';
import { retentionSettings } from '#contracts/retention.ts';
import { type GatewayName, gatewayFault, gatewaySettings } from '#operations/payments/gateways/index.ts';
import { oidcFault, oidcSettings } from '#service-kit/oidc/settings.ts';
import { providerSettings } from '#service-kit/pages/provider.ts';
import {
  breachedPasswordsFileSetting,
  limitsUrlSetting,
  mailFolderSetting,
  preparedStatementsSetting,
  webhookPrivateTargetsSetting,
} from '#service-kit/settings.ts';

export const secretsKeyPrefix = 'SVC_OPERATIONS_SECRETS_KEY';

export const operationsSettings = {
  dataDir: textSetting('SVC_DATA_DIR', './data', 'Folder that holds everything the programs keep on disk.'),
  host: textSetting('SVC_OPERATIONS_HOST', '127.0.0.1', 'Address that operations listens on.'),
  port: integerSetting(
    'SVC_OPERATIONS_PORT',
    8080,
    { min: 0, max: 65_535 },
    'Port that operations listens on; 0 takes a free one.',
  ),
  healthPort: integerSetting(
    'SVC_OPERATIONS_HEALTH_PORT',
    0,
    { min: 0, max: 65_535 },
    'Port of /healthz, /readyz and /metrics of a process without the role web (serve --only); 0 takes a free one, which the log names.',
  ),
  publicUrl: httpUrlSetting(
    'SVC_OPERATIONS_PUBLIC_URL',
    null,
    'Where customers reach operations, such as https://my.example.com. With https, cookies are sent over https only.',
  ),
  acceptedHosts: hostListSetting(
    'SVC_OPERATIONS_ACCEPTED_HOSTS',
    'Further host names under which browsers reach operations, such as operations.internal.example, separated by commas. Pages answer 421 under names that are neither here nor in SVC_OPERATIONS_PUBLIC_URL; addresses and localhost are accepted always, and the APIs take any name.',
  ),
  trustedProxies: prefixListSetting(
    'SVC_OPERATIONS_TRUSTED_PROXIES',
    'Reverse proxies in front of operations, such as 127.0.0.1, separated by commas. Only their X-Forwarded-For header is used for the caller’s address, so name nothing wider than the proxies.',
  ),
  databaseUrl: databaseUrlSetting(
    'SVC_OPERATIONS_DATABASE_URL',
    'PostgreSQL (15 or newer) of operations; unset: an embedded server in the data directory.',
  ),
  preparedStatements: preparedStatementsSetting,
  secretsKeyFile: optionalTextSetting(
    `${secretsKeyPrefix}_FILE`,
    'The file with the key of the secrets in the database; the first start makes it. Copies of the database are useless without it: keep its copy elsewhere.',
    'secrets.key in the folder operations of the data directory',
  ),
  secretsKeyCommand: optionalTextSetting(
    `${secretsKeyPrefix}_COMMAND`,
    'A program that wraps and unwraps the key of those secrets by a key management service, instead of a file; docs/operating/secrets-key.md describes what it is given.',
  ),
  metricsToken: optionalTextSetting(
    'SVC_OPERATIONS_METRICS_TOKEN',
    'The bearer token under which Prometheus may read /metrics; without it there are no metrics.',
  ),
  hypervisor: choiceSetting(
    'SVC_OPERATIONS_HYPERVISOR',
    ['simulated', 'lab'],
    'simulated',
    'What runs the guests of the demo world. Elsewhere each cluster names its driver, in the console.',
  ),
  labSocket: optionalTextSetting(
    'SVC_OPERATIONS_LAB_SOCKET',
    'Control socket of the lab, for clusters of the driver lab.',
  ),
  simulatedGuests: optionalTextSetting(
    'SVC_OPERATIONS_SIMULATED_GUESTS',
    'JSON file of guests ({name, mac, addresses}) that the simulated hypervisor hands out first.',
  ),
  reverseDnsFile: optionalTextSetting(
    'SVC_OPERATIONS_REVERSE_DNS_FILE',
    'JSON file of the DNS servers that hold the reverse names of each prefix (docs/operating/reverse-dns.md).',
  ),
  noticeUrl: httpUrlSetting(
    'SVC_OPERATIONS_NOTICE_URL',
    null,
    'Base URL of the monitor that is told about destroyed servers: https, or http on this machine.',
  ),
  allowInsecureHttp: allowInsecureHttpSetting,
  noticeSecret: optionalTextSetting(
    'SVC_OPERATIONS_NOTICE_SECRET',
    'Secret that signs those notices; the monitor has the same.',
  ),
  ...oidcSettings,
  ...gatewaySettings,
  ...retentionSettings,
  limitsUrl: limitsUrlSetting,
  requestsPerMinute: integerSetting(
    'SVC_API_KEY_REQUESTS_PER_MINUTE',
    120,
    { min: 1, max: 1_000_000, unit: 'requests' },
    'Requests that one API key may make within any minute.',
  ),
  authFailuresMax: integerSetting(
    'SVC_API_AUTH_FAILURES_MAX',
    300,
    { min: 1, max: 1_000_000, unit: 'failures' },
    'Failed authentications of one source address within five minutes before further ones are a 429.',
  ),
  adminAuthFailuresMax: integerSetting(
    'SVC_ADMIN_AUTH_FAILURES_MAX',
    60,
    { min: 1, max: 1_000_000, unit: 'failures' },
    'Failed admin API authentications of one source address within five minutes before further ones are a 429.',
  ),
  deploysPerHour: integerSetting(
    'SVC_API_DEPLOYS_PER_HOUR',
    100,
    { min: 1, max: 1_000_000, unit: 'orders' },
    'Servers that one account may order within any hour.',
  ),
  networksMax: integerSetting(
    'SVC_PRIVATE_NETWORKS_MAX',
    10,
    { min: 0, max: 10_000, unit: 'networks' },
    'Private networks that one account may have.',
  ),
  addressesMax: integerSetting(
    'SVC_KEPT_ADDRESSES_MAX',
    5,
    { min: 0, max: 10_000, unit: 'addresses' },
    'Public addresses that one account may keep, with or without a server.',
  ),
  snapshotsMax: integerSetting(
    'SVC_SNAPSHOTS_MAX',
    5,
    { min: 0, max: 1_000, unit: 'snapshots' },
    'Snapshots that one server may have. Each takes as much of the storage pool as the disk holds.',
  ),
  snapshotGbQuanta: decimalSetting(
    'SVC_SNAPSHOTS_PER_GB_MONTH',
    '0.00',
    { places: 4, max: 1_000, unit: 'of the account’s currency' },
    'Price of 10^9 bytes of snapshots for a month of 730 hours, with at most four decimals; 0 charges nothing. A new price holds from the next hour on.',
  ),
  bandwidthSource: choiceSetting(
    'SVC_BANDWIDTH_SOURCE',
    ['hypervisor', 'telemetry'],
    'hypervisor',
    'What says how much a server used: counters of the hypervisors, or the minutes that the monitor delivers.',
  ),
  bandwidthPoolCounts: choiceSetting(
    'SVC_BANDWIDTH_POOL_COUNTS',
    ['outbound', 'total'],
    'outbound',
    'Which bytes count against the bandwidth pool of an account.',
  ),
  bandwidthBaseGb: integerSetting(
    'SVC_BANDWIDTH_BASE_GB',
    1_000,
    { min: 0, max: 1_000_000, unit: 'GB' },
    'Bandwidth pool of every account, each UTC month.',
  ),
  bandwidthPerServerGb: integerSetting(
    'SVC_BANDWIDTH_PER_SERVER_GB',
    500,
    { min: 0, max: 1_000_000, unit: 'GB' },
    'What each server beyond the first adds to the pool in a full month; earned by the hour.',
  ),
  bandwidthTenureYearGb: integerSetting(
    'SVC_BANDWIDTH_TENURE_YEAR_GB',
    100,
    { min: 0, max: 1_000_000, unit: 'GB' },
    'What each full year of an account adds to its pool.',
  ),
  bandwidthTenureMaxGb: integerSetting(
    'SVC_BANDWIDTH_TENURE_MAX_GB',
    1_000,
    { min: 0, max: 1_000_000, unit: 'GB' },
    'Most that the years of an account add to its pool.',
  ),
  bandwidthOverageQuanta: decimalSetting(
    'SVC_BANDWIDTH_OVERAGE_PER_TB',
    '0.00',
    { places: 4, max: 100_000, unit: 'of the account’s currency' },
    'Price of 10^12 bytes beyond the bandwidth pool of an account, with at most four decimals; 0 charges nothing. Needs SVC_BANDWIDTH_SOURCE=telemetry. A new or higher price holds from the next UTC month on.',
  ),
  bandwidthLimitMbit: integerSetting(
    'SVC_BANDWIDTH_LIMIT_MBIT',
    0,
    { min: 0, max: 100_000, unit: 'Mbit/s' },
    'Speed of each server of an account that has used up its bandwidth pool and chose to be limited instead of charged; 0 offers no such choice and ends limits, but does not charge those who chose it. Needs SVC_BANDWIDTH_OVERAGE_PER_TB, and nodes that can limit.',
  ),
  includedPerMonth: integerSetting(
    'API_INCLUDED_REQUESTS_PER_MONTH',
    5_000,
    { min: 0, max: 1_000_000_000, unit: 'requests' },
    'Free API requests of an account per UTC calendar month.',
  ),
  overageUnitRequests: integerSetting(
    'API_OVERAGE_UNIT_REQUESTS',
    100_000,
    { min: 1, max: 1_000_000_000, unit: 'requests' },
    'Number of requests above the free quota that cost API_OVERAGE_RATE_PER_UNIT.',
  ),
  overageRateQuanta: decimalSetting(
    'API_OVERAGE_RATE_PER_UNIT',
    '1.00',
    { places: 4, max: 100_000, unit: 'of the account’s currency' },
    'Price of API_OVERAGE_UNIT_REQUESTS requests above the free quota, with at most four decimals.',
  ),
  smtpUrl: smtpUrlSetting(
    'SVC_SMTP_URL',
    'The mail server for links and notices to people, such as smtp://user:password@mail.example.com:587 or smtps://…; unset: no mail is sent, and operators hand links over.',
  ),
  smtpFrom: optionalTextSetting(
    'SVC_SMTP_FROM',
    'Sender of the mails to people, such as Example Cloud <no-reply@example.com>.',
    'SVC_PROVIDER_NAME, no-reply@localhost',
  ),
  ...providerSettings,
  mailFolder: mailFolderSetting,
  breachedPasswordsFile: breachedPasswordsFileSetting,
  requireSecondFactor: booleanSetting(
    'SVC_REQUIRE_SECOND_FACTOR',
    false,
    'Staff must have a second factor: without one the console opens nothing but the page on which it is set up.',
  ),
  webhookPrivateTargets: webhookPrivateTargetsSetting,
  allowDocumentationAddresses: booleanSetting(
    'SVC_ALLOW_DOCUMENTATION_ADDRESSES',
    false,
    'Documentation address ranges count as globally routable; for lab and demo worlds.',
  ),
  demoWorld: booleanSetting(
    'SVC_DEMO_WORLD',
    false,
    'Fill an empty system with a demo world and write its logins and keys to demo.json.',
  ),
  demoSignOn: optionalTextSetting(
    'SVC_DEMO_SIGN_ON',
    "The demo world's single sign-on with the monitor, as JSON; not kept in any log.",
  ),
  demoAttack: optionalTextSetting(
    'SVC_DEMO_ATTACK',
    'The command by which the demo attacks one of its servers, as a JSON array of words; the target is added to it.',
  ),
  demoSimulatedSite: optionalTextSetting(
    'SVC_DEMO_SIMULATED_SITE',
    "Servers of the demo world's customers on a hypervisor that does not exist, as JSON; without it they have none.",
  ),
  logFormat: logFormatSetting,
  logLevel: logLevelSetting,
};

export type OperationsSettings = SettingValues<typeof operationsSettings>;

/** Reads and checks the settings; throws one error that names every fault. */
export function readOperationsSettings(
  environment: Readonly<Record<string, string | undefined>> = process.env,
): OperationsSettings {
  const settings = readSettings(operationsSettings, environment);
  if ((settings.noticeUrl === null) !== (settings.noticeSecret === null)) {
    throw new CodedError(
      'config.invalid',
      'SVC_OPERATIONS_NOTICE_URL and SVC_OPERATIONS_NOTICE_SECRET belong together: set both or neither.',
    );
  }
  if (settings.bandwidthOverageQuanta > 0 && settings.bandwidthSource !== 'telemetry') {
    throw new CodedError(
      'config.invalid',
      'SVC_BANDWIDTH_OVERAGE_PER_TB needs SVC_BANDWIDTH_SOURCE=telemetry: counters of hypervisors have spoofed traffic too, which was never delivered.',
    );
  }
  const fault = gatewayFault(settings) ?? oidcFault(settings);
  if (fault !== null) throw new CodedError('config.invalid', fault);
  return settings;
}

/**
 * The payment gateway that was chosen; throws where none was. With the test gateway customers give themselves credit, so
 * it is never what an operator gets by leaving a setting out.
 */
export function requirePaymentGateway(settings: OperationsSettings): GatewayName {
  if (settings.paymentGateway !== null) return settings.paymentGateway;
  if (settings.demoWorld) return 'test';
  throw new CodedError(
    'config.invalid',
    'SVC_PAYMENT_GATEWAY is not set. Set it to stripe, with SVC_STRIPE_SECRET_KEY, to charge real cards; set it to test to try svc with test cards: then no money moves and customers can give themselves credit.',
  );
}

export function reporterOf(settings: OperationsSettings): Reporter {
  return createReporter({ program: 'operations', format: settings.logFormat, level: settings.logLevel });
}
