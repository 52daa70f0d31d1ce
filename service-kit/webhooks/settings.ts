import { booleanSetting } from '#common/config/index.ts';

export const webhookPrivateTargetsSetting = booleanSetting(
  'SVC_WEBHOOK_PRIVATE_TARGETS',
  false,
  'Webhooks may go over plain http and to addresses that are not on the internet; for lab and demo worlds.',
);
