import { redisUrlSetting } from '#service-kit/redis/settings.ts';

/** Where several processes of a program count their limits together. */
export const limitsUrlSetting = redisUrlSetting(
  'SVC_LIMITS_URL',
  'Redis or Valkey in which all processes of a program count limits together, such as redis://:password@host:6379/0 or rediss://…; its maxmemory-policy must be noeviction. Unset: each process counts for itself. Identical on every process.',
);
