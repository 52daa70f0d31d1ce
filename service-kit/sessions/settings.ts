import { optionalTextSetting } from '#common/config/index.ts';

export const breachedPasswordsFileSetting = optionalTextSetting(
  'SVC_BREACHED_PASSWORDS_FILE',
  'A file of SHA-1 digests of leaked passwords in ascending order, as the downloader of haveibeenpwned.com/Passwords writes it; such passwords are refused. Unset: common passwords alone are refused.',
);
