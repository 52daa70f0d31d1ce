import { optionalTextSetting } from '#common/config/index.ts';

export const mailFolderSetting = optionalTextSetting(
  'SVC_MAIL_FOLDER',
  'Mails to people are written into this folder instead of being sent; for demo worlds, which show them at /dev/mail/.',
);
