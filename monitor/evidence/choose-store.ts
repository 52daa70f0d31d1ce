import { join, resolve } from 'node:path';
import type { SettingValues } from '#common/config/index.ts';
import { CodedError } from '#common/errors/index.ts';
import { requirePrivateTransport } from '#common/transport/index.ts';
import { createFolderStore } from './folder-store.ts';
import type { ObjectStore } from './object-store.ts';
import { createS3Store } from './s3-store.ts';
import type { evidenceSettings } from './settings.ts';

export type EvidenceConfig = SettingValues<typeof evidenceSettings> & {
  programDir: string;
  allowInsecureHttp: boolean;
};

/** The store that the settings name. Throws `config.invalid` where they contradict one another. */
export function chooseStore(config: EvidenceConfig): ObjectStore {
  const { evidenceBucket: bucket, evidenceEndpoint: endpoint, evidenceRegion: region } = config;
  const { evidenceKeyId: accessKeyId, evidenceKey: secretAccessKey } = config;
  if (bucket === null) {
    if (endpoint !== null || accessKeyId !== null || secretAccessKey !== null)
      throw new CodedError('config.invalid', 'SVC_MONITOR_EVIDENCE_S3_BUCKET must name the bucket.');
    return createFolderStore(resolve(config.evidenceFolder ?? join(config.programDir, 'evidence')));
  }
  if (config.evidenceFolder !== null)
    throw new CodedError(
      'config.invalid',
      'Set either SVC_MONITOR_EVIDENCE_FOLDER or SVC_MONITOR_EVIDENCE_S3_BUCKET, not both.',
    );
  if ((accessKeyId === null) !== (secretAccessKey === null))
    throw new CodedError(
      'config.invalid',
      'Set both SVC_MONITOR_EVIDENCE_S3_ACCESS_KEY_ID and SVC_MONITOR_EVIDENCE_S3_SECRET_ACCESS_KEY, or neither.',
    );
  if (endpoint !== null)
    requirePrivateTransport(endpoint, {
      isAllowed: config.allowInsecureHttp,
      advice: 'Use https in SVC_MONITOR_EVIDENCE_S3_ENDPOINT.',
    });
  return createS3Store({ endpoint, bucket, region, accessKeyId, secretAccessKey });
}
