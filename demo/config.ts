/** The settings that the demo itself reads; every other setting reaches the programs as it is. */
import { resolve } from 'node:path';
import { booleanSetting, integerSetting, readSettings, textSetting } from '#common/config/index.ts';

export const demoSettings = {
  dataDir: textSetting('SVC_DATA_DIR', './data', 'Folder for everything that the programs keep.'),
  operationsPort: integerSetting('SVC_OPERATIONS_PORT', 8080, { min: 1, max: 65535 }, 'Port of operations.'),
  monitorPort: integerSetting('SVC_MONITOR_PORT', 8090, { min: 1, max: 65535 }, 'Port of the monitor.'),
  hasHistory: booleanSetting(
    'SVC_DEMO_HISTORY',
    true,
    'Loads a simulated site of 20 hypervisors with seven days of history into the monitor, behind everything else, and goes on with it minute by minute.',
  ),
};

export interface DemoSettings {
  dataDir: string;
  operationsPort: number;
  monitorPort: number;
  hasHistory: boolean;
}

export function readDemoSettings(environment: NodeJS.ProcessEnv): DemoSettings {
  const values = readSettings(demoSettings, environment);
  return { ...values, dataDir: resolve(values.dataDir) };
}
