/**
 * How the monitor is put together: features by their doors, surfaces over them, parts in the order in which they start.
 *
 * Nothing runs here; `serve` and the commands start the parts that they need.
 */
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import { createReporter, type Reporter } from '#common/reporter/index.ts';
import { type AuditTrail, createAuditTrail } from '#service-kit/audit/index.ts';
import { createPost, ownUrl, type Post } from '#service-kit/mail/index.ts';
import { createDatabase, type Database, listMissingMigrations } from '#service-kit/postgres/index.ts';
import { createSecondFactors, factorSecrets, type SecondFactors } from '#service-kit/second-factors/index.ts';
import {
  createKeyWrapper,
  createSecrets,
  type KeyWrapper,
  type Secrets,
} from '#service-kit/secrets/index.ts';
import { createBreachedPasswords, createSessions, type Sessions } from '#service-kit/sessions/index.ts';
import { type Alerts, alertSecrets, createAlerts } from './alerts/index.ts';
import {
  type Applications,
  createApplications,
  createRankingLoop,
  nameApplication,
} from './applications/index.ts';
import { type MonitorConfig, secretsKeyPrefix } from './config.ts';
import { createDevices, type Devices } from './devices/index.ts';
import { createEvents, type Events } from './events/index.ts';
import { createFactStore, createRollUpLoop, type FactStore } from './facts/index.ts';
import { createFeeds, type Feed, type Feeds, installedFeeds } from './feeds/index.ts';
import { createHealth, createMeters, type Health, type Meters } from './health/index.ts';
import { createInbox, type Inbox, type InboxDeps } from './inbox/index.ts';
import { createIntake, type Intake } from './intake/index.ts';
import { createInventory, type Inventory } from './inventory/index.ts';
import { createLive, createPostgresStore, createRedisStore, type Live } from './live/index.ts';
import { type Connection, connectionSecrets, createConnection } from './operations-client/index.ts';
import { createOperators, type Operators } from './operators/index.ts';
import { checkAddresses } from './placements/index.ts';
import { createProbes, type Probes } from './probes/index.ts';
import { createRetention, type Retention } from './retention/index.ts';
import { createNamesLoop, createSearch, type Search } from './search/index.ts';
import { createSensors, type Sensors } from './sensors/index.ts';
import { createSetAsides, type SetAsides } from './set-asides/index.ts';
import { createSites, type Sites } from './sites/index.ts';
import { createTraffic, type Traffic } from './traffic/index.ts';
import { createVendors, type Vendors } from './vendors/index.ts';

export interface Monitor {
  reporter: Reporter;
  database: Database;
  /** Sealed secrets; `secrets.part` starts after the database. */
  secrets: Secrets;
  sessions: Sessions;
  /** Mails to people. */
  post: Post;
  factors: SecondFactors;
  operators: Operators;
  auditTrail: AuditTrail;
  sites: Sites;
  sensors: Sensors;
  facts: FactStore;
  traffic: Traffic;
  applications: Applications;
  events: Events;
  setAsides: SetAsides;
  intake: Intake;
  inbox: Inbox;
  live: Live;
  probes: Probes;
  alerts: Alerts;
  connection: Connection;
  devices: Devices;
  vendors: Vendors;
  inventory: Inventory;
  feeds: Feeds;
  search: Search;
  retention: Retention;
  health: Health;
  meters: Meters;
  /** Loops that run beside the server, in the order in which they start. */
  loops: Part[];
}

export interface CompositionOptions {
  /** Another database than the one of the settings. */
  database?: Database;
  /** For a command that may run beside `serve`: it uses the embedded database which that one runs. */
  mayJoin?: boolean;
  /** Another key for the database's secrets than the one of the settings. */
  keyWrapper?: KeyWrapper;
  /** Another place for log lines than standard error. */
  reporter?: Reporter;
  /** Other feeds than the installed ones; `readConfig` has to know them too. */
  feeds?: readonly Feed[];
  /** Times of the inbox's workers, shorter where tests wait for them. */
  inbox?: Pick<InboxDeps, 'leaseSeconds' | 'retrySeconds'>;
}

const migrations = fileURLToPath(new URL('./migrations', import.meta.url));

/** Every column that holds a sealed secret. */
export const monitorSecrets = [...connectionSecrets, ...alertSecrets, ...factorSecrets];

/** Wires the monitor. */
export function composeMonitor(config: MonitorConfig, options: CompositionOptions = {}): Monitor {
  const reporter =
    options.reporter ??
    createReporter({ program: 'monitor', format: config.logFormat, level: config.logLevel });
  const database =
    options.database ??
    createDatabase({
      program: 'monitor',
      urlSetting: 'SVC_MONITOR_DATABASE_URL',
      url: config.databaseUrl,
      readerUrl: config.readerDatabaseUrl,
      programDir: config.programDir,
      migrations,
      mayJoin: options.mayJoin ?? false,
      reporter,
    });
  const db = () => database.db;
  const reader = () => database.reader;
  const secrets = createSecrets({
    db,
    program: 'monitor',
    columns: monitorSecrets,
    reporter,
    wrapper:
      options.keyWrapper ??
      createKeyWrapper({
        settingPrefix: secretsKeyPrefix,
        file: config.secretsKeyFile,
        command: config.secretsKeyCommand,
        programDir: config.programDir,
      }),
  });
  const post = createPost({
    smtp: config.smtpUrl === null ? null : { url: config.smtpUrl, from: config.smtpFrom },
    folder: config.mailFolder,
    baseUrl: () => ownUrl(config),
    reporter,
  });
  const operators = createOperators({
    db,
    post,
    breached: createBreachedPasswords(config.breachedPasswordsFile, 'SVC_BREACHED_PASSWORDS_FILE'),
  });
  const sites = createSites({ db, reader });
  const events = createEvents({ db });
  const facts = createFactStore({ db, nameApplication });
  const setAsides = createSetAsides({ db });
  const traffic = createTraffic({ db, facts, setAsides });
  const applications = createApplications({
    db,
    facts,
    clock: systemClock,
    rankingHoldSeconds: config.rankingHoldSeconds,
  });
  const base = { db, clock: systemClock, reporter };
  const connection = createConnection({ db, secrets, allowsInsecureHttp: config.allowInsecureHttp });
  // Devices of a demo world are made up.
  const registryUrl = config.isDemoWorld ? null : config.macVendorLookupUrl;
  const vendors = createVendors({ ...base, registryUrl });
  const devices = createDevices({ db, events, vendors });
  const inventory = createInventory({
    ...base,
    connection,
    devices,
    sites,
    onPlaced: (trx, changed) => facts.rejudge(trx, changed),
    intervalSeconds: config.inventorySyncSeconds,
  });
  const feeds = createFeeds({
    ...base,
    feeds: options.feeds ?? installedFeeds,
    cadences: config.feeds,
    reader,
    connection,
    sites,
    traffic,
    applications,
    documentationIsGlobal: config.allowDocumentationAddresses,
  });
  const probes = createProbes({ db, reader });
  const sensors = createSensors({
    db,
    reader,
    protectedTargets: (siteId, sensorId) => feeds.listAddresses(siteId, sensorId),
    plannedProbes: (siteId) => probes.listPlanned(siteId),
    onPlaced: (trx, changed) => facts.rejudge(trx, changed),
    credentialDays: config.sensorCredentialDays,
    reporter,
  });
  const meters = createMeters();
  const intake = createIntake({ clock: systemClock });
  const inbox = createInbox({
    ...base,
    ...options.inbox,
    reader,
    tally: meters.tally,
    intake,
    setAsides,
    sensors,
    facts,
    probes,
    events,
    async onUploads(trx, uploads) {
      await sensors.noteInventories(trx, uploads);
      await devices.recordSightings(trx, uploads);
    },
  });
  const liveBounds = { historySeconds: config.liveHistorySeconds, historyMax: config.liveHistoryMax };
  const live = createLive({
    intake,
    store: config.liveStoreUrl
      ? createRedisStore({ ...liveBounds, url: config.liveStoreUrl, reporter })
      : createPostgresStore(db, liveBounds),
    noteCondition: (sensorId, condition) => sensors.noteCondition(sensorId, condition),
    noteSetAside: (sensorId, rows) => setAsides.noteLive(sensorId, rows),
    checkAddresses: (spoken) => checkAddresses(db(), spoken),
  });
  const retention = createRetention({ ...base, feeds, inbox, live });
  const health = createHealth({
    reader,
    inbox,
    feeds,
    inventory,
    retention,
    sensors,
    live,
    missingMigrations: () => listMissingMigrations(database, migrations),
  });
  const alerts = createAlerts({
    ...base,
    secrets,
    sensors,
    traffic,
    probes,
    rules: { allowPrivate: config.webhookPrivateTargets },
    mail: config.smtpUrl ? { url: config.smtpUrl, from: config.smtpFrom } : null,
    consoleUrl: config.publicUrl,
  });
  const sessions = createSessions({
    db,
    cookieName: 'svc_monitor',
    isHttps: config.publicUrl?.startsWith('https:') ?? false,
  });
  const loops: Part[] = [live.part];
  if (config.hasInboxWorker) loops.push(inbox.worker);
  loops.push(createRollUpLoop({ ...base, facts }));
  if (config.hasRanking) loops.push(createRankingLoop({ ...base, facts }));
  loops.push(createNamesLoop({ ...base, facts }));
  if (config.hasInventorySync) loops.push(inventory.loop);
  loops.push(...feeds.all.filter(({ cadence }) => cadence.isOn).map(({ loop }) => loop));
  if (config.hasAlerts) loops.push(...alerts.parts);
  if (config.hasMaintenance) loops.push(retention.loop);
  return {
    reporter,
    database,
    sessions,
    post,
    secrets,
    factors: createSecondFactors({ db, clock: systemClock, secrets, issuer: 'svc monitor' }),
    operators,
    auditTrail: createAuditTrail({ db }),
    sites,
    sensors,
    facts,
    traffic,
    setAsides,
    applications,
    events,
    intake,
    inbox,
    live,
    probes,
    alerts,
    connection,
    devices,
    vendors,
    inventory,
    feeds,
    search: createSearch({ db, sites }),
    retention,
    health,
    meters,
    loops,
  };
}
