/** The features of the monitor, wired to one another; inert until the database has been started. */

import { requirePrivateTransport, staysOnMachine } from '#common/transport/index.ts';
import { createOidc } from '#service-kit/oidc/index.ts';
import { readOidc } from '#service-kit/oidc/settings.ts';
import { senderOf } from '#service-kit/pages/provider.ts';
import { listMissingMigrations, type Queryable } from '#service-kit/postgres/index.ts';
import { createBreachedPasswords } from '#service-kit/sessions/index.ts';
import { createSignOn } from '#service-kit/sign-on/index.ts';
import { createAlerts, createFindingAlerts, noteIncidents } from './alerts/index.ts';
import { createApplications, nameApplication } from './applications/index.ts';
import { createDetection } from './detection/index.ts';
import { createDevices } from './devices/index.ts';
import { createEvents } from './events/index.ts';
import { chooseStore, createEvidence, type Evidence } from './evidence/index.ts';
import { createExplorer } from './explorer/index.ts';
import { createFactConsumer, createFacts, type FactStore, openScope } from './facts/index.ts';
import { createFeeds, cursorsKeptMs, type Feeds, installedFeeds } from './feeds/index.ts';
import { createFilterSection, createHandOff, noteHandOff } from './hand-off/index.ts';
import { createHealth, createMonitorMeters } from './health/index.ts';
import { createInbox, type Inbox } from './inbox/index.ts';
import { createIncidents, type IncidentChange, type Incidents } from './incidents/index.ts';
import { createIntake } from './intake/index.ts';
import { createInventory } from './inventory/index.ts';
import {
  createLive,
  createPostgresStore,
  createRedisStore,
  createWindowReader,
  type Live,
  type LiveStore,
  liveSection,
} from './live/index.ts';
import { createConnection } from './operations-client/index.ts';
import { type Actor, createOperators, requireOperator } from './operators/index.ts';
import type { Overrides } from './overrides.ts';
import { createPeers } from './peers/index.ts';
import { type ChangedAddress, checkAddresses } from './placements/index.ts';
import { migrations, type Platform } from './platform.ts';
import { createProbes } from './probes/index.ts';
import { createProtection } from './protection/index.ts';
import { createReadTokens } from './read-tokens/index.ts';
import { createRetention, type KeptTable, keptTables, type Sweep } from './retention/index.ts';
import { createSavedViews } from './saved-views/index.ts';
import { createScans } from './scans/index.ts';
import { createSearch } from './search/index.ts';
import { createSensors } from './sensors/index.ts';
import { createSetAsides } from './set-asides/index.ts';
import { createSites } from './sites/index.ts';
import { createSpoofing } from './spoofing/index.ts';
import { captureSection, createTraffic } from './traffic/index.ts';
import { createVendors } from './vendors/index.ts';
import { createVulnerabilities, noteEvidence } from './vulnerabilities/index.ts';

/** What was observed, what it is about, and who is told. */
type Observation = ReturnType<typeof createObservation>;

/** What sensors are asked for, and what becomes of what they send. */
type Reception = ReturnType<typeof createReception>;

export type Features = ReturnType<typeof createFeatures>;

/** Wires the features to one another. */
export function createFeatures(platform: Platform, overrides: Overrides) {
  const observation = createObservation(platform, overrides);
  const reception = createReception(platform, observation, overrides);
  const known = { ...platform, ...observation, ...reception };
  return { ...known, ...createCare(known) };
}

/** An incident changed: its alert and what rules do against it follow. */
async function noteChanges(trx: Queryable, changes: readonly IncidentChange[]): Promise<void> {
  await noteIncidents(trx, changes);
  await noteHandOff(trx, changes);
}

/** A server moved: facts and incidents of its addresses are judged again. */
function rejudgeWith(facts: FactStore, incidents: Incidents) {
  return async (trx: Queryable, changed: readonly ChangedAddress[]) => {
    await facts.rejudge(changed, openScope(trx));
    await incidents.rejudge(trx, changed);
  };
}

function chooseFacts({ db, reader, config }: Platform, overrides: Overrides) {
  const engine = createFacts({ db, reader, nameApplication }, config.factsPlace);
  return { ...engine, facts: overrides.facts ?? engine.facts };
}

function createObservation(platform: Platform, overrides: Overrides) {
  const { config, db, reader, clock, reporter, secrets } = platform;
  const base = { db, clock, reporter };
  const sites = createSites({ db, reader });
  const events = createEvents({ db });
  const { facts, ...factEngine } = chooseFacts(platform, overrides);
  const detection = createDetection({ db, reader });
  const meters = createMonitorMeters();
  const tally = meters.tallyIncidents;
  const incidents = createIncidents({ ...base, reader, events, tally, onChange: noteChanges });
  const evidence = createEvidence({
    ...{ ...base, reader, incidents },
    objects: overrides.evidenceObjects ?? chooseStore(config),
    days: config.evidenceDays,
  });
  const documentationIsGlobal = config.allowDocumentationAddresses;
  const scans = createScans({ db, reader, sites, documentationIsGlobal, onResult: noteEvidence });
  const setAsides = createSetAsides({ db });
  const traffic = createTraffic({ db, facts, setAsides });
  const { rankingHoldSeconds } = config;
  const applications = createApplications({ db, facts, clock, rankingHoldSeconds });
  const connection = createConnection({ db, secrets, allowsInsecureHttp: config.allowInsecureHttp });
  // Devices of a demo world are made up.
  const registryUrl = config.isDemoWorld ? null : config.macVendorLookupUrl;
  const vendors = createVendors({ ...base, registryUrl });
  const severe = alertedSeverities[config.vulnerabilityAlerts];
  const vulnerabilities = createVulnerabilities({
    ...{ ...base, scans, source: nvdSource(config), isDemo: config.isDemoWorld },
    ...{ severe, trackers: config.packageTrackers },
    onChecked: createFindingAlerts(severe, events),
  });
  const devices = createDevices({ db, events, vendors });
  const peers = createPeers({ db, facts, reporter, networkFiles: config.networkFiles });
  const explorer = createExplorer({ db, facts, devices, describeNetworks: peers.describe });
  const inventory = createInventory({
    ...{ ...base, connection, devices, sites, events },
    onPlaced: rejudgeWith(facts, incidents),
    intervalSeconds: config.inventorySyncSeconds,
  });
  const liveStore = createLiveStore(platform);
  const feeds = createFeeds({
    ...base,
    feeds: overrides.feeds ?? installedFeeds,
    cadences: config.feeds,
    reader,
    connection,
    sites,
    traffic,
    applications,
    incidents,
    scans,
    vulnerabilities,
    live: createWindowReader(liveStore),
    documentationIsGlobal,
    ...overrides.feedDeps,
  });
  return {
    sites,
    events,
    facts,
    /** The server of the facts, where it is another one than the database; its part starts after that. */
    factEngine,
    incidents,
    evidence,
    scans,
    detection,
    meters,
    setAsides,
    traffic,
    applications,
    vendors,
    vulnerabilities,
    devices,
    peers,
    explorer,
    connection,
    inventory,
    liveStore,
    feeds,
  };
}

/** By the setting: severities that operators are alerted of. */
const alertedSeverities = { off: [], critical: ['critical'], high: ['high', 'critical'] } as const;

/** The vulnerability database; a demo world asks none but one of its own machine. Throws `transport.insecure` where its key would be readable on the way. */
function nvdSource({ nvdUrl, nvdApiKey, isDemoWorld, allowInsecureHttp }: Platform['config']) {
  if (nvdUrl === null || (isDemoWorld && !staysOnMachine(nvdUrl))) return null;
  const apiKey = nvdApiKey || null;
  const advice = 'Set SVC_NVD_URL to an https address, or leave SVC_NVD_API_KEY empty.';
  if (apiKey !== null) requirePrivateTransport(nvdUrl, { isAllowed: allowInsecureHttp, advice });
  return { url: nvdUrl, apiKey };
}

function createLiveStore({ config, db, reporter }: Platform): LiveStore {
  const bounds = { historySeconds: config.liveHistorySeconds, historyMax: config.liveHistoryMax };
  return config.liveStoreUrl
    ? createRedisStore({ ...bounds, url: config.liveStoreUrl, reporter })
    : createPostgresStore(db, bounds);
}

function createReception(platform: Platform, observation: Observation, overrides: Overrides) {
  const { config, db, reader, clock, reporter } = platform;
  const { facts, incidents, detection, feeds, setAsides, devices, events, sites } = observation;
  const { liveStore, meters, scans } = observation;
  const probes = createProbes({ db, reader });
  const spoofing = createSpoofing({ db, reader, events });
  const protection = createProtection({
    ...{ db, reader, sites, clock, reporter },
    takesEvidence: config.takesEvidence,
  });
  const sensors = createSensors({
    db,
    reader,
    sections: overrides.sections ?? [
      captureSection,
      liveSection,
      feeds.protection,
      protection.section,
      scans.section,
      spoofing.section,
      probes.section,
      createFilterSection({ db, reader }),
    ],
    onPlaced: rejudgeWith(facts, incidents),
    credentialDays: config.sensorCredentialDays,
    reporter,
  });
  const intake = createIntake({ clock });
  const inbox = createInbox({
    ...{ db, reader, clock, reporter, intake, sensors, events },
    gatherMs: observation.factEngine.gatherMs,
    tally: meters.tally,
    // Another process applies what this one receives.
    ...(overrides.roles?.has('inbox') === false ? { decodedBytesMax: 0 } : {}),
    consumers: [
      createFactConsumer(facts),
      detection.consumer,
      probes.consumer,
      setAsides.consumer,
      spoofing.consumer,
      sensors.inventoryConsumer,
      incidents.consumer,
      devices.consumer,
      ...(overrides.consumers ?? []),
    ],
    ...overrides.inbox,
  });
  const live = createLive({
    intake,
    store: liveStore,
    noteCondition: (sensorId, condition) => sensors.noteCondition(sensorId, condition),
    noteSetAside: (sensorId, rows) => setAsides.noteLive(sensorId, rows),
    checkAddresses: (spoken) => checkAddresses(db(), spoken),
  });
  return { probes, spoofing, protection, sensors, intake, inbox, live };
}

/** What looks after the rest, for people. */
function createCare(known: Platform & Observation & Reception) {
  const { config, db, database, post } = known;
  const retention = createRetention({
    ...known,
    tables: keptWithObjects(known.evidence),
    sweeps: sweepsOf(known),
  });
  const operators = createOperators({
    db,
    post,
    breached: createBreachedPasswords(config.breachedPasswordsFile, 'SVC_BREACHED_PASSWORDS_FILE'),
  });
  const handOff = createHandOff({
    ...known,
    webhooks: { allowPrivate: config.webhookPrivateTargets },
    commandsFolder: config.handOffCommands || null,
    bgp: {
      peers: config.handOffBgpPeers,
      ownAs: config.handOffBgpAs || null,
      keepSeconds: config.handOffBgpKeepSeconds,
    },
  });
  return {
    operators,
    oidc: createOidc({ db, provider: readOidc(config), staff: operators.staff }),
    /** With the operators' console of operations. */
    signOn: createSignOn<Actor>({
      ...{ db, clock: known.clock, secrets: known.secrets, requireOperator },
      findOperator: (personId) => operators.find(personId),
      allowsInsecureHttp: config.allowInsecureHttp,
    }),
    readTokens: createReadTokens(known),
    savedViews: createSavedViews(known),
    search: createSearch(known),
    retention,
    health: createHealth({
      ...known,
      retention,
      missingMigrations: () => listMissingMigrations(database, migrations),
    }),
    alerts: createAlerts({
      ...known,
      handOff,
      rules: { allowPrivate: config.webhookPrivateTargets },
      mail: config.smtpUrl ? { url: config.smtpUrl, from: senderOf(config, 'monitor') } : null,
      consoleUrl: config.publicUrl,
    }),
    handOff,
  };
}

/** What else happens when data is no longer kept. */
const withFiles = ['incidents', 'incident_observations', 'site_correlations'];

/** Capture files of incidents are removed before the incidents, and while they can't be, both stay. */
const keptWithObjects = (evidence: Pick<Evidence, 'removeOfIncidents'>): KeptTable[] =>
  keptTables.map((kept) =>
    withFiles.includes(kept.table) ? { ...kept, beforeRemoval: evidence.removeOfIncidents } : kept,
  );

/** Data that features delete by rules of their own. A store of objects may not answer, so it is the last. */
const sweepsOf = (of: { feeds: Feeds; inbox: Inbox; live: Live; evidence: Evidence }): Sweep[] => [
  { name: 'feed_cursors', run: (nowMs) => of.feeds.forgetCursors(nowMs - cursorsKeptMs) },
  { name: 'inbox_uploads', run: () => of.inbox.prune() },
  { name: 'live_windows', run: () => of.live.prune() },
  { name: 'evidence_files', run: () => of.evidence.removeExpired() },
];
