/** Closed lists of potential vulnerabilities (NET-2.6): how severe they are, and why a service can't be assessed. */

/** As databases rate them, from the least to the most severe. */
export const findingSeverities = ['none', 'low', 'medium', 'high', 'critical'] as const;
export type FindingSeverity = (typeof findingSeverities)[number];
/** From which on a customer can be mailed. */
export const mailedSeverities = ['medium', 'high', 'critical'] as const satisfies readonly FindingSeverity[];

/**
 * From the most severe, as they are counted, filtered and shown; `unrated` where the database gives none. Operations stores counts
 * in this order.
 */
export const severityRows = {
  critical: { tone: 'bad', color: 'bad-text' },
  high: { tone: 'bad', color: 'chart-2' },
  medium: { tone: 'warn', color: 'chart-5' },
  low: { tone: 'info', color: 'chart-1' },
  none: { tone: 'neutral', color: 'n8' },
  unrated: { tone: 'neutral', color: 'n8' },
} as const satisfies Record<FindingSeverity | 'unrated', { tone: string; color: string }>;
export type CountedSeverity = keyof typeof severityRows;
export const countedSeverities = Object.keys(severityRows) as CountedSeverity[];

/** Those with a count of their own at the monitor; it counts `none` as unrated. */
export type RatedSeverity = Exclude<FindingSeverity, 'none'>;
export const ratedSeverities = countedSeverities.filter(
  (name): name is RatedSeverity => name !== 'none' && name !== 'unrated',
);

interface UnableRow {
  /** For operators, after the service. */
  words: string;
  /** For customers. */
  sentence: string;
}

const unable = {
  not_probed: {
    words: 'its name is guessed from the port',
    sentence: 'The service did not answer what it is. Its name is guessed from the port number.',
  },
  low_confidence: {
    words: 'the scan is not certain what answered',
    sentence: 'The answer of the service fits several programs.',
  },
  unknown_product: {
    words: 'its product is not looked up',
    sentence: 'This product is not compared with the database.',
  },
  ambiguous_product: {
    words: 'the scan names several products',
    sentence: 'The answer of the service names several products.',
  },
  no_version: { words: 'it shows no version', sentence: 'The service does not show its version.' },
  ambiguous_version: {
    words: 'its version is not exact',
    sentence: 'The version can be read in several ways.',
  },
  incomplete_version: {
    words: 'it shows a part of its version',
    sentence: 'The service shows only a part of its version.',
  },
  distribution_package: {
    words: 'distribution package: faults are mended without a new version',
    sentence:
      'A package of a Linux distribution. Distributions fix faults without changing the version, so the version does not say what is fixed.',
  },
  /** Another service of the server is a package of a distribution. */
  likely_packaged: {
    words: 'likely a distribution package, as another service of the server is',
    sentence:
      'Another service of this server is a package of a Linux distribution, so this one is likely to be one too. The version of a package does not say what is fixed.',
  },
  /** Records of the product were never fetched. */
  no_database: {
    words: 'records of the product were never fetched',
    sentence: 'Records of this product have not been fetched yet.',
  },
} as const satisfies Record<string, UnableRow>;

/** Why a service can't be assessed (NET-2.6.2). */
export type UnableReason = keyof typeof unable;
export const unableReasons = Object.keys(unable) as UnableReason[];
export const unableRows: Readonly<Record<UnableReason, UnableRow>> = unable;
