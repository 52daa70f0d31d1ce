/** Money as whole quanta of $0.0001, so that sums are exact; text leaves with at least two decimals. */
export const quantaPerUnit = 10_000;

/** `89` → `0.0089`, `60000` → `6.00`. */
export function formatQuanta(quanta: number): string {
  const magnitude = Math.abs(quanta);
  const fraction = String(magnitude % quantaPerUnit).padStart(4, '0');
  const shortened = fraction.replace(/0{1,2}$/, '');
  return `${quanta < 0 ? '-' : ''}${Math.floor(magnitude / quantaPerUnit)}.${shortened}`;
}

/** `25`, `25.5` or `25.0001` as quanta; null for what is no such amount. */
export function parseMoney(text: string): number | null {
  const match = /^(\d{1,9})(?:\.(\d{1,4}))?$/.exec(text.trim());
  return match && Number(match[1]) * quantaPerUnit + Number((match[2] ?? '').padEnd(4, '0'));
}
