/**
 * The incidents that are open, on disk, so that a sensor that starts again goes on with them under the same ids.
 *
 * Replaced as a whole and synced. A damaged file is no reason to stop: its incidents are lost, and seen anew.
 */
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describeError } from '#common/errors/index.ts';
import type { Reporter } from '#common/reporter/index.ts';
import { attackClassOf } from '#contracts/attack-classes.ts';
import type { Incident } from '#sensor/detector/index.ts';

export interface StoredIncident {
  capture: string;
  /** The latest revision that was given out. */
  revision: number;
  deviceKey: string;
  incident: Incident;
}

const format = 1;

export type OpenIncidentsFile = ReturnType<typeof createOpenIncidentsFile>;

export function createOpenIncidentsFile(stateDirectory: string, reporter: Reporter) {
  const path = join(stateDirectory, 'incidents.json');
  return {
    read(): StoredIncident[] {
      let text: string;
      try {
        text = readFileSync(path, 'utf8');
      } catch {
        return [];
      }
      try {
        const body = JSON.parse(text) as { format?: unknown; incidents?: unknown };
        if (body.format !== format || !Array.isArray(body.incidents)) throw new Error('not this format');
        return body.incidents.filter(isStored).map(renewed);
      } catch (error) {
        reporter.warn('the file of open incidents can not be read; attacks that go on are detected anew', {
          why: describeError(error),
        });
        return [];
      }
    },
    /** Throws when the disk does not take it. */
    write(open: readonly StoredIncident[]) {
      const next = `${path}.new`;
      const file = openSync(next, 'w', 0o600);
      try {
        writeFileSync(file, JSON.stringify({ format, incidents: open }));
        fsyncSync(file);
      } finally {
        closeSync(file);
      }
      renameSync(next, path);
      const directory = openSync(dirname(path), 'r');
      try {
        fsyncSync(directory);
      } finally {
        closeSync(directory);
      }
    },
  };
}

/** What an older sensor stored has other names of classes, and knows less of vectors. */
function renewed({ incident, ...stored }: StoredIncident): StoredIncident {
  const times = (incident.vectorTimes ?? []).map((one) => ({
    ...one,
    ...{ class: attackClassOf(one.class), protocols: one.protocols ?? [] },
  }));
  return { ...stored, incident: { ...incident, class: attackClassOf(incident.class), vectorTimes: times } };
}

function isStored(value: unknown): value is StoredIncident {
  const { capture, revision, incident } = (value ?? {}) as Partial<StoredIncident>;
  if (typeof capture !== 'string' || !Number.isSafeInteger(revision)) return false;
  const { id, target, peak, totals, seconds, remotes, vectors, startedAt, state } = (incident ??
    {}) as Partial<Incident>;
  const hasLists = Array.isArray(seconds) && Array.isArray(remotes) && Array.isArray(vectors);
  const hasTimes = typeof startedAt === 'number' && state === 'active';
  return typeof id === 'string' && !!target && !!peak && !!totals && hasLists && hasTimes;
}
