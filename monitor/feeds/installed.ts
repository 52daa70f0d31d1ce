import type { Feed } from './feed.ts';
import { incidents } from './incidents/index.ts';
import { live } from './live/index.ts';
import { minutes } from './minutes/index.ts';
import { portScans } from './port-scans/index.ts';
import { vulnerabilities } from './vulnerabilities/index.ts';

/** The feeds of the monitor, in the order of pages; a new feed is added here. */
export const installedFeeds: readonly Feed[] = [minutes, incidents, live, portScans, vulnerabilities];
