/** When a sighting changes who owns an address. All in seconds. */

/** How far the stored time of a sighting may lag while nothing else changes. */
export const lagSeconds = 300;
/** After a longer time without a sighting a new binding begins. */
export const silenceSeconds = 3600;
/** A sighting is of a minute; a claim that ends with its last sighting ends after that minute. */
export const lastMinuteSeconds = 60;

/** An owner without sightings loses its claim when another one was seen so much later. */
export const supersededSeconds = 600;
/** The same for owners in conflict, which may be seen in turn. */
export const conflictSettledSeconds = 3600;
/** Two owners clash when both were seen within this time of the newest sighting. */
export const overlapSeconds = 300;

/** A MAC stays foreign for so long after it was reported as foreign. */
export const foreignKeptSeconds = 86_400;
/** A report of a foreign MAC is stored again after this time. */
export const foreignNotedSeconds = 3600;
