/** Times of a query. */
import { invalidFields } from './validate-input.ts';

/** Whether the calendar has this day: `new Date` turns 30 February into 2 March. */
export function isDay(text: string): boolean {
  const day = new Date(`${text}T00:00:00Z`);
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text);
}

/** Milliseconds of a text that fits the contract's `momentPattern`; throws the 422 for a day that the calendar does not have. */
export function readMoment(path: string, text: string): number {
  const ms = isDay(text.slice(0, 10)) ? Date.parse(text.toUpperCase()) : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  throw invalidFields([{ path, code: 'format', message: 'is a day that the calendar does not have' }]);
}
