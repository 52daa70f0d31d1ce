/**
 * Receives a capture file and is killed (SIGKILL) around the object: `killed-receiver.ts URL FOLDER SENSOR OBSERVATION MOMENT`,
 * MOMENT `before` or `after` the object is there. The file comes on standard input.
 */
import { buffer } from 'node:stream/consumers';
import { systemClock } from '#common/clock/index.ts';
import { silentReporter } from '#common/reporter/index.ts';
import { findObservation } from '#monitor/incidents/read-store.ts';
import { createPool } from '#service-kit/postgres/database.ts';
import { createEvidence } from '../index.ts';
import { createFolderStore } from '../object-store.ts';

const [url, folder, sensorId, observationId, moment] = process.argv.slice(2) as string[];
const { db } = createPool(url!, 1);
const real = createFolderStore(folder!);
const evidence = createEvidence({
  ...{ db: () => db, reader: () => db, clock: systemClock, reporter: silentReporter, days: 7 },
  incidents: { findObservation: (sensor, id) => findObservation(db, sensor, id) },
  objects: {
    ...real,
    async put(key, bytes) {
      if (moment === 'after') await real.put(key, bytes);
      process.kill(process.pid, 'SIGKILL');
    },
  },
});
await evidence.receive({ id: Number(sensorId) }, observationId!, await buffer(process.stdin));
