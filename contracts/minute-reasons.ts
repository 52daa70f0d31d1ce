/**
 * Why minutes are missing or partial: what sensors report and monitors find of captures, and what receivers of the feed and
 * customers are told (NET-2.4).
 */

interface MinuteRow {
  /** `attack`: of the attack rates, or where those are known of the coverage; `minute`: of all values. */
  of: 'minute' | 'attack';
  /** Beside a value. */
  short: string;
  /** A sentence for customers. */
  long: string;
}

const minute = {
  sensor_down: {
    of: 'minute',
    short: 'sensor not running',
    long: 'The sensor on the hypervisor of this server did not run, so the traffic is unknown.',
  },
  capture_failed: {
    of: 'minute',
    short: 'capture failed',
    long: 'The capture on the hypervisor of this server failed, so the traffic is unknown.',
  },
  packets_lost: {
    of: 'minute',
    short: 'data lost',
    long: 'Packets or counters of this minute were lost: a value that is shown is a minimum, and without one the traffic is unknown.',
  },
  clock: {
    of: 'minute',
    short: 'clock was set',
    long: 'The clock of the hypervisor was set, so this minute was longer or shorter than one.',
  },
  /** A sensor that listens has not delivered it yet; a later request has it. */
  not_finished: {
    of: 'minute',
    short: 'not delivered yet',
    long: 'The sensor on the hypervisor of this server has not delivered this minute yet. It follows.',
  },
  /** Not sent in this version: requests go back 24 hours, and minutes are kept longer. Receivers take it. */
  expired: {
    of: 'minute',
    short: 'kept no longer',
    long: 'The sensor no longer had this minute when it could have been delivered.',
  },
  detector_incomplete: {
    of: 'attack',
    short: 'detector incomplete',
    long: 'The attack detector did not watch the whole minute, so nothing can be said about attack traffic.',
  },
  no_epoch: {
    of: 'attack',
    short: 'not protected yet',
    long: 'This address was not protected throughout the minute, so nothing can be said about attack traffic.',
  },
  unassignable: {
    of: 'attack',
    short: 'attack nearby',
    long: 'There was an attack that can not be assigned to one address, so the part of this address is unknown.',
  },
} as const satisfies Record<string, MinuteRow>;

export type MinuteReason = keyof typeof minute;
export const minuteReasons = Object.keys(minute) as MinuteReason[];
export const minuteRows: Readonly<Record<MinuteReason, MinuteRow>> = minute;

/** What is wrong with all values of a minute; undefined where that is nothing, or of the attack alone. */
export function lossOf(reason: MinuteReason | null): MinuteRow | undefined {
  const row = reason === null ? undefined : minuteRows[reason];
  return row?.of === 'minute' ? row : undefined;
}

interface GapRow {
  /** As receivers are told: what was observed and not kept is lost for them too. */
  told: MinuteReason;
  /** For operators. */
  words: string;
  /** Nothing was observed, or nothing was kept: another minute of the same time contradicts it. */
  isUnobserved?: true;
}

const reported = {
  sensor_down: { told: 'sensor_down', words: 'the sensor did not run', isUnobserved: true },
  capture_failed: { told: 'capture_failed', words: 'the capture did not run', isUnobserved: true },
  storage_full: { told: 'packets_lost', words: 'the sensor’s spool was full', isUnobserved: true },
  refused: { told: 'packets_lost', words: 'the upload was refused' },
  spool_damaged: { told: 'packets_lost', words: 'the sensor’s spool was damaged' },
  clock_step: { told: 'clock', words: 'the host’s clock jumped' },
} as const satisfies Record<string, GapRow>;

/** Reasons on the wire of sensors. */
export type GapReason = keyof typeof reported;
export const gapReasons = Object.keys(reported) as GapReason[];

const gap = {
  ...reported,
  rejected: { told: 'packets_lost', words: 'the upload could not be applied' },
  packets_lost: { told: 'packets_lost', words: 'packets were lost' },
  not_finished: { told: 'not_finished', words: 'not delivered yet' },
} as const satisfies Record<string, GapRow>;

/** The same, and what the monitor finds itself. */
export type MinuteLoss = keyof typeof gap;
export const gapRows: Readonly<Record<MinuteLoss, GapRow>> = gap;
export const unobservedReasons = gapReasons.filter((reason) => gapRows[reason].isUnobserved);
