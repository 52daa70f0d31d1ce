/** How a value changed against the period before. */
import { formatCount, formatPercent } from '#service-kit/pages/index.ts';

/** `+14 %`, `−3 %`, `new`, `× 12` from ten times on; null where the value before is not known. */
export function changeText(now: number, before: number | null): string | null {
  if (before === null) return null;
  if (before === 0) return now === 0 ? 'none' : 'new';
  const change = now / before - 1;
  if (Math.abs(change) < 0.005) return '±0 %';
  if (change >= 9) return `× ${formatCount(Math.round(now / before))}`;
  return `${change < 0 ? '−' : '+'}${formatPercent(Math.abs(change), 0)}`;
}
