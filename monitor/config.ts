/** The monitor's settings; the only reader of its environment. */
import { join, resolve } from 'node:path';
import {
  booleanSetting,
  choiceSetting,
  databaseUrlSetting,
  findUnknownNames,
  hostListSetting,
  httpUrlSetting,
  integerSetting,
  optionalTextSetting,
  prefixListSetting,
  readSettings,
  type Setting,
  smtpUrlSetting,
  textSetting,
} from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { logFormatSetting, logLevelSetting } from '#common/reporter/settings.ts';
import { allowInsecureHttpSetting } from '#common/transport/index.ts';
import { retentionSettings } from '#contracts/retention.ts';
import { oidcFault, oidcSettings } from '#service-kit/oidc/settings.ts';
import { providerSettings } from '#service-kit/pages/provider.ts';
import {
  breachedPasswordsFileSetting,
  limitsUrlSetting,
  mailFolderSetting,
  preparedStatementsSetting,
  redisUrlSetting,
  webhookPrivateTargetsSetting,
} from '#service-kit/settings.ts';
import { evidenceSettings } from './evidence/index.ts';
import { type FactsPlace, parseFactsUrl } from './facts/index.ts';
import { cadencesOf, type Feed, installedFeeds, settingsOfFeeds } from './feeds/index.ts';
import { parsePeers } from './hand-off/bgp/peer.ts';

/** Where the facts are; the password appears in no message. */
function factsUrlSetting(name: string, sentence: string): Setting<FactsPlace | null> {
  return {
    name,
    sentence,
    defaultText: "unset: the monitor's PostgreSQL database",
    parse: (text) => (text === undefined || text === '' ? null : parseFactsUrl(text)),
  };
}

/** Paths and URLs, separated by commas. */
const readList = (text: string | undefined): string[] =>
  (text ?? '')
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');

export const secretsKeyPrefix = 'SVC_MONITOR_SECRETS_KEY';

export const monitorSettings = {
  dataDirectory: textSetting('SVC_DATA_DIR', './data', 'The directory for all data.'),
  host: textSetting('SVC_MONITOR_HOST', '127.0.0.1', 'The address the monitor listens on.'),
  port: integerSetting(
    'SVC_MONITOR_PORT',
    8090,
    { min: 0, max: 65_535 },
    'The port the monitor listens on; 0 takes any free one.',
  ),
  healthPort: integerSetting(
    'SVC_MONITOR_HEALTH_PORT',
    0,
    { min: 0, max: 65_535 },
    'The port of /healthz, /readyz and /metrics of a process without the role web (serve --only); 0 takes any free one, which the log names.',
  ),
  publicUrl: httpUrlSetting(
    'SVC_MONITOR_PUBLIC_URL',
    null,
    'The URL under which people and sensors reach the monitor; https makes its cookies secure.',
  ),
  acceptedHosts: hostListSetting(
    'SVC_MONITOR_ACCEPTED_HOSTS',
    'Further host names under which browsers reach the monitor, such as monitor.internal.example, separated by commas. Pages answer 421 under names that are neither here nor in SVC_MONITOR_PUBLIC_URL; addresses and localhost are accepted always, and sensors and the APIs may use any name.',
  ),
  trustedProxies: prefixListSetting(
    'SVC_MONITOR_TRUSTED_PROXIES',
    'Reverse proxies in front of the monitor, such as 127.0.0.1, separated by commas. Only their X-Forwarded-For is trusted, so name nothing wider than the proxies.',
  ),
  connectionsMax: integerSetting(
    'SVC_MONITOR_CONNECTIONS_MAX',
    8192,
    { min: 16, max: 1_000_000 },
    'Connections that the monitor holds at a time, of sensors and browsers together; a sensor holds one or two. One client address holds at most 1,024, a trusted proxy any number.',
  ),
  databaseUrl: databaseUrlSetting(
    'SVC_MONITOR_DATABASE_URL',
    "The monitor's PostgreSQL database, 15 or newer.",
  ),
  readerDatabaseUrl: databaseUrlSetting(
    'SVC_MONITOR_READER_DATABASE_URL',
    'The same database with a read-only role, for plans, health and metrics.',
    'unset: read-only sessions of the other role',
  ),
  preparedStatements: preparedStatementsSetting,
  factsPlace: factsUrlSetting(
    'SVC_FACTS_URL',
    'ClickHouse for the traffic facts of large installations, 25.8 or newer, such as clickhouse://user:password@host:8123/database or https://user:password@host:8443/database; docs/operating/clickhouse.md. Identical on every service of the monitor.',
  ),
  secretsKeyFile: optionalTextSetting(
    `${secretsKeyPrefix}_FILE`,
    'The file with the key of the secrets in the database; the first start makes it. Copies of the database are useless without it: keep its copy elsewhere.',
    'secrets.key in the folder monitor of the data directory',
  ),
  secretsKeyCommand: optionalTextSetting(
    `${secretsKeyPrefix}_COMMAND`,
    'A program that wraps and unwraps the key of those secrets by a key management service, instead of a file; docs/operating/secrets-key.md describes what it is given.',
  ),
  metricsToken: optionalTextSetting(
    'SVC_MONITOR_METRICS_TOKEN',
    'The bearer token under which Prometheus may read /metrics; without it there are no metrics.',
  ),
  hasInventorySync: booleanSetting(
    'SVC_OPS_INVENTORY_SYNC',
    true,
    'Whether serve imports the inventory automatically; with 0 only "Sync now" imports it. Notices count in both cases.',
  ),
  inventorySyncSeconds: integerSetting(
    'SVC_OPS_INVENTORY_SYNC_SECONDS',
    60,
    { min: 5, max: 3600, unit: 's' },
    'Pause between two imports of the inventory.',
  ),
  hasRanking: booleanSetting(
    'SVC_APPLICATION_RANKING',
    true,
    'Whether serve also recomputes the application rankings of 24 hours, every five minutes; one process of many is enough.',
  ),
  rankingHoldSeconds: integerSetting(
    'SVC_APPLICATION_RANKING_HOLD_SECONDS',
    90,
    { min: 0, max: 3600, unit: 's' },
    'Telemetry processing: how long a web process caches an application ranking before it reads the stored one again.',
  ),
  hasMaintenance: booleanSetting(
    'SVC_MONITOR_MAINTENANCE',
    true,
    'Whether serve removes expired data every hour; 0 leaves that to "./svc monitor maintain_metrics".',
  ),
  hasAlerts: booleanSetting(
    'SVC_MONITOR_ALERTS',
    true,
    'Whether serve also evaluates alerts and sends notifications; any number of processes may.',
  ),
  hasHandOff: booleanSetting(
    'SVC_HAND_OFF',
    true,
    'Whether serve also carries out what the rules of hand-off decide against attacks; any number of processes may. Without rules nothing happens.',
  ),
  handOffCommands: optionalTextSetting(
    'SVC_HAND_OFF_COMMANDS',
    'The folder with the programs that rules of hand-off may start, such as /etc/svc/hand-off; rules choose among its executable files. Only root should be able to write there.',
    'unset: no rule starts a program',
  ),
  handOffBgpPeers: {
    name: 'SVC_HAND_OFF_BGP_PEERS',
    sentence:
      'BGP peers that rules of hand-off may announce blackholes and filters to, such as 64512@127.0.0.1:179 (AS, address, port), separated by commas: usually a gobgpd on this machine.',
    defaultText: 'unset: no rule announces routes',
    parse: (text: string | undefined) => parsePeers(text ?? ''),
  },
  handOffBgpAs: integerSetting(
    'SVC_HAND_OFF_BGP_AS',
    0,
    { min: 0, max: 4_294_967_295 },
    'The AS number of the monitor towards its BGP peers; 0 is that of each peer.',
  ),
  handOffBgpKeepSeconds: integerSetting(
    'SVC_HAND_OFF_BGP_KEEP_SECONDS',
    120,
    { min: 0, max: 4095, unit: 's' },
    'How long BGP peers keep the routes when no monitor has a session with them any more, if they support graceful restart; 0 withdraws them at once.',
  ),
  smtpUrl: smtpUrlSetting(
    'SVC_SMTP_URL',
    'The mail server for alerts and for links and notices to people, such as smtp://user:password@mail.example.com:587 or smtps://…; unset: no mail is sent, and operators hand links over.',
  ),
  smtpFrom: optionalTextSetting(
    'SVC_SMTP_FROM',
    'Sender of alerts and of mails to people, such as Example Cloud <alerts@example.com>.',
    'SVC_PROVIDER_NAME monitor, no-reply@localhost',
  ),
  ...providerSettings,
  mailFolder: mailFolderSetting,
  breachedPasswordsFile: breachedPasswordsFileSetting,
  requireSecondFactor: booleanSetting(
    'SVC_REQUIRE_SECOND_FACTOR',
    false,
    'People must have a second factor: without one the console opens only the page to set it up.',
  ),
  allowInsecureHttp: allowInsecureHttpSetting,
  sensorCredentialDays: integerSetting(
    'SVC_SENSOR_CREDENTIAL_DAYS',
    90,
    { min: 1, max: 3650, unit: 'days' },
    'Lifetime of rotated sensor credentials; sensors rotate them after two thirds of it.',
  ),
  webhookPrivateTargets: webhookPrivateTargetsSetting,
  liveStoreUrl: redisUrlSetting(
    'SVC_LIVE_STORE_URL',
    'Redis or Valkey for live windows, such as redis://:password@host:6379/0, for several machines; its maxmemory-policy must be noeviction. Unset: the database. Identical on every service.',
  ),
  liveHistorySeconds: integerSetting(
    'SVC_LIVE_HISTORY_SECONDS',
    3600,
    { min: 60, max: 86_400, unit: 's' },
    'How long live windows are kept; identical on every service.',
  ),
  liveHistoryMax: integerSetting(
    'SVC_LIVE_HISTORY_MAXLEN',
    20_000,
    { min: 1, max: 1_000_000 },
    'Live windows kept for each site, the newest; identical on every service.',
  ),
  limitsUrl: limitsUrlSetting,
  networkFiles: {
    name: 'SVC_MONITOR_NETWORK_FILE',
    sentence:
      "Files in MaxMind's format with the AS or the country of networks, such as GeoLite2-ASN.mmdb and GeoLite2-Country.mmdb, separated by commas. The console names networks by them, and the explorer filters and groups peers by country and AS; they are read again when they change.",
    defaultText: 'unset: networks have neither AS nor country',
    parse: readList,
  },
  ...evidenceSettings,
  ...oidcSettings,
  ...retentionSettings,
  macVendorLookupUrl: httpUrlSetting(
    'SVC_MAC_VENDOR_LOOKUP_URL',
    'https://api.macvendors.com',
    'The public registry in which "./svc monitor resolve_mac_vendors" looks up manufacturers that are missing in the bundled table. It receives 24 bits of a MAC, as 00-1B-21 in place of {prefix} or at the end of the path, and answers with a name as text. Empty keeps identification offline, as in the demo world.',
    { emptyIsNone: true },
  ),
  hasVulnerabilitySync: booleanSetting(
    'SVC_VULNERABILITY_SYNC',
    true,
    'Whether serve also refreshes the records of the vulnerability database, each product once in 24 hours, and assesses what scans found; 0 leaves that to "./svc monitor refresh_vulnerabilities --loop".',
  ),
  nvdUrl: httpUrlSetting(
    'SVC_NVD_URL',
    'https://services.nvd.nist.gov/rest/json/cves/2.0',
    'The CVE API 2.0 of the NVD or of a mirror of it. It receives names of server products, such as openbsd:openssh, and nothing else. Empty: nothing is fetched; a demo world asks a database of its own machine only; "./svc monitor refresh_vulnerabilities --from FOLDER" reads the NVD\'s feed files.',
    { emptyIsNone: true },
  ),
  packageTrackers: {
    name: 'SVC_PACKAGE_TRACKERS',
    sentence:
      "Where files of distributions' security trackers are, separated by commas: folders into which others put them, and https URLs of single files, such as https://security-tracker.debian.org/tracker/data/json. They are read once in 24 hours. Nothing is sent but the request.",
    defaultText: 'unset: none',
    parse: readList,
  },
  vulnerabilityAlerts: choiceSetting(
    'SVC_VULNERABILITY_ALERTS',
    ['off', 'critical', 'high'],
    'high',
    'From which severity on operators are alerted of a new potential vulnerability of a server.',
  ),
  nvdApiKey: optionalTextSetting(
    'SVC_NVD_API_KEY',
    'A key of the NVD, which is a secret: one request in 0.6 s instead of 6 s. It is sent over https or within the machine only.',
  ),
  logFormat: logFormatSetting,
  logLevel: logLevelSetting,
  allowDocumentationAddresses: booleanSetting(
    'SVC_ALLOW_DOCUMENTATION_ADDRESSES',
    false,
    'Counts documentation ranges as globally routable; for labs and demo worlds only.',
  ),
  isDemoWorld: booleanSetting(
    'SVC_DEMO_WORLD',
    false,
    'Seeds a demo world and writes its logins to demo.json in the data directory.',
  ),
  demoOperationsUrl: httpUrlSetting('SVC_DEMO_OPERATIONS_URL', null, "The demo world's operations server."),
  demoOperationsToken: optionalTextSetting(
    'SVC_DEMO_OPERATIONS_TOKEN',
    "The demo world's admin API token; not kept in any log.",
  ),
  demoClusterId: integerSetting(
    'SVC_DEMO_CLUSTER_ID',
    0,
    { min: 0, max: Number.MAX_SAFE_INTEGER },
    'The cluster of operations that the demo site holds; 0 for none.',
  ),
  demoNode: optionalTextSetting('SVC_DEMO_NODE', "The node of the demo world's hypervisor."),
  demoNoticeSecret: optionalTextSetting(
    'SVC_DEMO_NOTICE_SECRET',
    "The demo world's signing secret of destroy notices.",
  ),
  demoLocalCidrs: textSetting(
    'SVC_DEMO_LOCAL_CIDRS',
    '192.0.2.0/24,2001:db8:1::/48',
    "The demo site's local prefixes, separated by commas.",
  ),
  demoSignOn: optionalTextSetting(
    'SVC_DEMO_SIGN_ON',
    "The demo world's single sign-on with operations, as JSON; not kept in any log.",
  ),
  demoAttack: optionalTextSetting(
    'SVC_DEMO_ATTACK',
    'The command by which the demo attacks one of its servers, as a JSON array of words; the target is added to it.',
  ),
  demoProbes: optionalTextSetting(
    'SVC_DEMO_PROBES',
    'What the demo site probes, such as icmp:198.51.100.1,dns:198.51.100.53.',
  ),
  demoSimulatedNodes: optionalTextSetting(
    'SVC_DEMO_SIMULATED_NODES',
    "Nodes of the demo world's simulated site that need an enrolment token, separated by commas.",
  ),
  demoSimulatedClusterId: integerSetting(
    'SVC_DEMO_SIMULATED_CLUSTER_ID',
    0,
    { min: 0, max: Number.MAX_SAFE_INTEGER },
    'The cluster of operations that the simulated site holds; 0 for none.',
  ),
  demoSimulatedCidrs: optionalTextSetting(
    'SVC_DEMO_SIMULATED_CIDRS',
    "The simulated site's local prefixes, separated by commas; there is no simulated site without them.",
  ),
};

export type MonitorConfig = ReturnType<typeof readConfig>;

/** Names that are no setting; `SVC_MONITOR_URL` is the sensor's. */
export const findUnknownSettings = (environment: NodeJS.ProcessEnv) =>
  findUnknownNames(
    { ...monitorSettings, ...(settingsOfFeeds(installedFeeds) as object) },
    environment,
    'SVC_MONITOR_',
    ['SVC_MONITOR_URL'],
  );

/**
 * Reads and validates the settings, including those of the feeds; `programDir` is the monitor's directory in the data
 * directory.
 */
export function readConfig(
  environment: Readonly<Record<string, string | undefined>>,
  feeds: readonly Feed[] = installedFeeds,
) {
  const ofFeeds = settingsOfFeeds(feeds);
  const values = readSettings({ ...monitorSettings, ...(ofFeeds as object) }, environment);
  const fault = oidcFault(values);
  if (fault !== null) throw new CodedError('config.invalid', fault);
  const dataDirectory = resolve(values.dataDirectory);
  return {
    ...values,
    dataDirectory,
    programDir: join(dataDirectory, 'monitor'),
    feeds: cadencesOf(feeds, values as Readonly<Record<string, unknown>>),
  };
}
