/**
 * What the loader must know after a stop or a kill: credentials, the last number of each spool, the upload that may be under way, and
 * what is loaded. Written by rename and synced before an upload is sent, so a number is never used for two uploads.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { UploadOrder } from './build-upload.ts';
import type { Range } from './ranges.ts';

export interface SensorState {
  credential: string;
  spoolId: string;
  /** The last number that was used. */
  sequence: number;
  /** What that number was used for, while there is no receipt. */
  pending: UploadOrder | null;
  loaded: Range[];
}

export interface SiteState {
  seed: number;
  /** Start of the history, seconds since 1970; it stays for good. */
  fromMinute: number;
  /** By node. */
  sensors: Record<string, SensorState>;
}

export const stateFileOf = (dataDir: string) => join(dataDir, 'demo', 'simulated-site.json');

/** Null where there is none, or none of this seed. */
export function readSiteState(file: string, seed: number): SiteState | null {
  try {
    const state = JSON.parse(readFileSync(file, 'utf8')) as SiteState;
    return state.seed === seed ? state : null;
  } catch {
    return null;
  }
}

/** It holds credentials, so its owner alone may read it. */
export function writeSiteState(file: string, state: SiteState): void {
  const draft = openSync(`${file}.new`, 'w', 0o600);
  try {
    writeSync(draft, JSON.stringify(state));
    fsyncSync(draft);
  } finally {
    closeSync(draft);
  }
  renameSync(`${file}.new`, file);
}
