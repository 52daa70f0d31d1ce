import { booleanSetting, optionalTextSetting, type Setting } from '#common/config/index.ts';

/** The URL of a Redis or Valkey; its password appears in no message. */
export function redisUrlSetting(name: string, sentence: string): Setting<string | null> {
  return {
    name,
    sentence,
    defaultText: 'unset',
    parse(text) {
      if (text === undefined || text === '') return null;
      const url = URL.parse(text);
      if (!url || (url.protocol !== 'redis:' && url.protocol !== 'rediss:') || url.hostname === '')
        throw new Error('must be a URL such as redis://:password@host:6379/0');
      return text;
    },
  };
}

/** Where several processes of a program count their limits together. */
export const limitsUrlSetting = redisUrlSetting(
  'SVC_LIMITS_URL',
  'Redis or Valkey in which all processes of a program count limits together, such as redis://:password@host:6379/0 or rediss://…; its maxmemory-policy must be noeviction. Unset: each process counts for itself. Identical on every process.',
);

export const mailFolderSetting = optionalTextSetting(
  'SVC_MAIL_FOLDER',
  'Mails to people are written into this folder instead of being sent; for demo worlds, which show them at /dev/mail/.',
);

export const breachedPasswordsFileSetting = optionalTextSetting(
  'SVC_BREACHED_PASSWORDS_FILE',
  'A file of SHA-1 digests of leaked passwords in ascending order, as the downloader of haveibeenpwned.com/Passwords writes it; such passwords are refused. Unset: common passwords alone are refused.',
);

export const webhookPrivateTargetsSetting = booleanSetting(
  'SVC_WEBHOOK_PRIVATE_TARGETS',
  false,
  'Webhooks may go over plain http and to addresses that are not on the internet; for lab and demo worlds.',
);

/** Off where a pooler hands one connection to several clients. */
export const preparedStatementsSetting = booleanSetting(
  'SVC_PREPARED_STATEMENTS',
  true,
  'Connections to PostgreSQL keep prepared statements, which saves most of the time of short ones. Set it to 0 behind a pooler in transaction mode.',
);
