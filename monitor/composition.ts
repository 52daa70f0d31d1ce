/**
 * How the monitor is put together: features by their doors, surfaces over them, parts in the order in which they start.
 *
 * Nothing runs here; `serve` and the commands start the parts that they need.
 */
import { fileURLToPath } from 'node:url';
import { systemClock } from '#common/clock/index.ts';
import type { Part } from '#common/lifecycle/index.ts';
import { createReporter, type Reporter } from '#common/reporter/index.ts';
import { createDatabase, type Database } from '#service-kit/postgres/index.ts';
import { createSessions, type Sessions } from '#service-kit/sessions/index.ts';
import { type Applications, createApplications } from './applications/index.ts';
import type { MonitorConfig } from './config.ts';
import { createEvents, type Events } from './events/index.ts';
import { createInbox, type Inbox } from './inbox/index.ts';
import { createOperators, type Operators } from './operators/index.ts';
import { createSensors, type Sensors } from './sensors/index.ts';
import { createSites, type Sites } from './sites/index.ts';
import { createTraffic, type Traffic } from './traffic/index.ts';

export interface Monitor {
  reporter: Reporter;
  database: Database;
  sessions: Sessions;
  operators: Operators;
  sites: Sites;
  sensors: Sensors;
  traffic: Traffic;
  applications: Applications;
  events: Events;
  inbox: Inbox;
  /** Loops that run beside the server, in the order in which they start. */
  loops: Part[];
}

/** Wires the monitor, over another database where one is given. */
export function composeMonitor(config: MonitorConfig, otherDatabase?: Database): Monitor {
  const reporter = createReporter({ program: 'monitor', format: config.logFormat, level: config.logLevel });
  const database =
    otherDatabase ??
    createDatabase({
      program: 'monitor',
      urlSetting: 'SVC_MONITOR_DATABASE_URL',
      url: config.databaseUrl,
      programDir: config.programDir,
      migrations: fileURLToPath(new URL('./migrations', import.meta.url)),
      reporter,
    });
  const db = () => database.db;
  const operators = createOperators({ db });
  const sites = createSites({ db });
  const events = createEvents({ db });
  const traffic = createTraffic({ db });
  const applications = createApplications({ db });
  const sensors = createSensors({ db, protectedTargets: async () => [] });
  const inbox = createInbox({
    db,
    sensors,
    traffic,
    applications,
    events,
    clock: systemClock,
    reporter,
  });
  const sessions = createSessions({
    db,
    cookieName: 'svc_monitor',
    isHttps: config.publicUrl?.startsWith('https:') ?? false,
  });
  const loops = config.hasInboxWorker ? [inbox.worker] : [];
  return {
    reporter,
    database,
    sessions,
    operators,
    sites,
    sensors,
    traffic,
    applications,
    events,
    inbox,
    loops,
  };
}
