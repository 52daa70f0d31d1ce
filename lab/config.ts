/** The lab's settings. */
import { integerSetting, readSettings, textSetting } from '#common/config/index.ts';

export const labSettings = {
  dataDir: textSetting('SVC_DATA_DIR', './data', 'Folder of everything that a world keeps.'),
  monitorPort: integerSetting(
    'SVC_MONITOR_PORT',
    8090,
    { min: 1, max: 65_535 },
    "Port of the monitor on the host's loopback, whose sensor API the hypervisor may call.",
  ),
};

/** Reads the settings; throws `config.invalid`. */
export function readLabConfig(environment: Readonly<Record<string, string | undefined>>) {
  return readSettings(labSettings, environment);
}
