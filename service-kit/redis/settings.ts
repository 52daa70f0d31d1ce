import type { Setting } from '#common/config/index.ts';

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
