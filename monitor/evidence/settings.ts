/** The settings of capture files. */
import {
  booleanSetting,
  httpUrlSetting,
  integerSetting,
  optionalTextSetting,
  textSetting,
} from '#common/config/index.ts';

export const evidenceSettings = {
  takesEvidence: booleanSetting(
    'SVC_MONITOR_EVIDENCE',
    true,
    'Whether sensors are asked for capture files of attacks: the first 2,000 packets, 256 bytes of each. 0: none is recorded.',
  ),
  evidenceDays: integerSetting(
    'PCAP_RETENTION_DAYS',
    7,
    { min: 1, max: 365, unit: 'days' },
    'How long capture files of attacks are kept; identical on every service.',
  ),
  evidenceFolder: optionalTextSetting(
    'SVC_MONITOR_EVIDENCE_FOLDER',
    'The folder for capture files of attacks. Several machines need one that they share, or a bucket.',
    'evidence in the folder monitor of the data directory',
  ),
  evidenceBucket: optionalTextSetting(
    'SVC_MONITOR_EVIDENCE_S3_BUCKET',
    'The bucket for capture files of attacks, in any S3-compatible store, instead of a folder.',
  ),
  evidenceEndpoint: httpUrlSetting(
    'SVC_MONITOR_EVIDENCE_S3_ENDPOINT',
    null,
    'The address of that store, such as https://s3.example.com; unset: Amazon S3.',
  ),
  evidenceRegion: textSetting(
    'SVC_MONITOR_EVIDENCE_S3_REGION',
    'us-east-1',
    'The region of the bucket; stores without regions ignore it.',
  ),
  evidenceKeyId: optionalTextSetting(
    'SVC_MONITOR_EVIDENCE_S3_ACCESS_KEY_ID',
    'The access key of the bucket; unset: as the machine says, such as the role of an instance.',
  ),
  evidenceKey: optionalTextSetting(
    'SVC_MONITOR_EVIDENCE_S3_SECRET_ACCESS_KEY',
    'The secret of that access key; not kept in any log.',
  ),
};
