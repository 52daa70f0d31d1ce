/** When attacks and minute traffic are delivered: the settings of one loop in the eyes of an operator (NET-4.6). */
import { booleanSetting, integerSetting } from '#common/config/index.ts';

export const opsDdosCadence = {
  isOn: booleanSetting(
    'SVC_OPS_DDOS_SYNC',
    true,
    'Whether serve also delivers incidents and minutes to operations; 0 leaves that to "./svc monitor sync_ops_ddos --loop".',
  ),
  seconds: integerSetting(
    'SVC_OPS_DDOS_SYNC_SECONDS',
    30,
    { min: 5, max: 3600, unit: 's' },
    'Pause between two deliveries of incidents and minutes to operations. A changed incident is delivered at once.',
  ),
} as const;
