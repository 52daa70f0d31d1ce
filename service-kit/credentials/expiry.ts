/** How long a credential works that a person makes in a form. */

/** What forms suggest, and what counts where the field is not sent. */
export const defaultDays = 365;
const dayMs = 86_400_000;

/**
 * When a credential expires by the days of a form: null for one that does not expire, which an empty field asks for.
 * Undefined: the text is no number of days.
 */
export function expiryOf(days: string | undefined, nowMs: number): Date | null | undefined {
  const text = days === undefined ? String(defaultDays) : days.trim();
  if (text === '') return null;
  return /^[1-9]\d{0,3}$/.test(text) ? new Date(nowMs + Number(text) * dayMs) : undefined;
}
