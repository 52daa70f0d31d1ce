/** The settings that the demo itself reads; every other setting reaches the programs as it is. */
import { resolve } from 'node:path';
import { integerSetting, readSettings, textSetting } from '#common/config/index.ts';

const settings = {
  dataDir: textSetting('SVC_DATA_DIR', './data', 'Folder for everything that the programs keep.'),
  operationsPort: integerSetting('SVC_OPERATIONS_PORT', 8080, { min: 1, max: 65535 }, 'Port of operations.'),
  monitorPort: integerSetting('SVC_MONITOR_PORT', 8090, { min: 1, max: 65535 }, 'Port of the monitor.'),
};

export interface DemoSettings {
  dataDir: string;
  operationsPort: number;
  monitorPort: number;
}

export function readDemoSettings(environment: NodeJS.ProcessEnv): DemoSettings {
  const values = readSettings(settings, environment);
  return { ...values, dataDir: resolve(values.dataDir) };
}
