/** Numbers of the customer API. */
import type { Limit } from './number.ts';

const config = 'operations/config.ts';
const calls = 'operations/surfaces/customer-api';

export const limitsOfClientApi: readonly Limit[] = [
  {
    rule: 'API-8.a',
    text: 'Request rate | 120 requests per minute per key | all authenticated requests; abuse brake, counted in a cache so approximate across workers',
    numbers: [
      {
        ...{ words: '120 requests', what: 'the budget of a key', value: 120, unit: 'requests' },
        ...{ file: config, code: "'SVC_API_KEY_REQUESTS_PER_MINUTE',\n    «120»," },
        test: `${calls}/limits.test.ts`,
      },
      {
        ...{ words: 'per minute', what: 'the time of the budget of a key', value: 60_000, unit: 'ms' },
        ...{ file: `${calls}/index.ts`, code: 'capacity: deps.requestsPerMinute, windowMs: «60_000»' },
        test: `${calls}/limits.test.ts`,
      },
    ],
  },
  {
    rule: 'API-8.b',
    text: 'Deploy rate | 100 deploys per hour per account | server creation',
    numbers: [
      {
        ...{ words: '100 deploys', what: 'the number of deploys of an account', value: 100, unit: 'orders' },
        ...{ file: config, code: "'SVC_API_DEPLOYS_PER_HOUR',\n    «100»," },
        test: `${calls}/limits.test.ts`,
      },
      {
        ...{ words: 'per hour', what: 'the time in which deploys count', value: 1, unit: 'hour' },
        ...{ file: 'operations/ordering/store.ts', code: "created_at > svc_now() - interval '«1» hour'" },
        test: `${calls}/limits.test.ts`,
      },
    ],
  },
  {
    rule: 'API-8.c',
    text: 'Failed authentication | throttled per source address | unauthenticated attempts',
    numbers: [],
  },
  {
    rule: 'API-2.1.3',
    text: 'Active keys | 25 per user | key creation',
    numbers: [
      {
        ...{ words: '25 per user', what: 'the number of active keys of a person', value: 25, unit: 'keys' },
        ...{ file: 'operations/api-keys/change-keys.ts', code: 'activeKeysMax = «25»;' },
        test: 'operations/api-keys/api-keys.test.ts',
      },
    ],
  },
  {
    rule: 'API-8.1',
    text: 'Free monthly requests | 5,000 per UTC calendar month per account | request metering',
    numbers: [
      {
        ...{ words: '5,000', what: 'the number of free requests of a month', value: 5_000, unit: 'requests' },
        ...{ file: config, code: "'API_INCLUDED_REQUESTS_PER_MONTH',\n    «5_000»," },
        test: `${calls}/metering.test.ts`,
      },
    ],
  },
  {
    rule: 'API-8.6',
    text: 'Overage price | $1.00 per 100,000 requests beyond the free amount | billed against account credit',
    numbers: [
      {
        ...{ words: '$1.00', what: 'the price of a unit of overage', value: 1, unit: 'dollar' },
        ...{ file: config, code: "'API_OVERAGE_RATE_PER_UNIT',\n    '«1.00»'," },
        test: 'operations/billing-maintenance/maintenance.test.ts',
      },
      {
        ...{ words: '100,000 requests', what: 'a unit of overage', value: 100_000, unit: 'requests' },
        ...{ file: config, code: "'API_OVERAGE_UNIT_REQUESTS',\n    «100_000»," },
        test: 'operations/billing-maintenance/maintenance.test.ts',
      },
    ],
  },
  {
    rule: 'API-8',
    text: 'Bandwidth | attribution only, not a cap | bandwidth endpoints',
    numbers: [],
  },
];
