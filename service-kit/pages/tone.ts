/** The meaning of a colour. Colour is never the only sign: every element with a tone also shows a word or a shape. */
export type Tone = 'neutral' | 'info' | 'good' | 'warn' | 'bad';

const marks: Record<Tone, string> = { neutral: '○', info: '●', good: '●', warn: '▲', bad: '■' };

/** The shape that goes with a tone, so that it is seen without colour. */
export function toneMark(tone: Tone): string {
  return marks[tone];
}
