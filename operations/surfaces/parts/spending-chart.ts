import type { DaySpending } from '#operations/views/index.ts';
import { chart, type Html } from '#service-kit/pages/index.ts';

/** What was charged each day. */
export function spendingChart(days: readonly DaySpending[], title: string): Html {
  const isQuiet = days.every((day) => day.serverQuanta + day.otherQuanta === 0);
  return chart({
    id: 'spending',
    title,
    unit: 'money',
    size: 'small',
    source: 'ledger, days in UTC',
    emptyText: 'Nothing was charged in the last 30 days.',
    data: {
      timesMs: days.map((day) => day.day.getTime()),
      stepMs: 86_400_000,
      shape: 'bars',
      series: isQuiet
        ? []
        : [
            { label: 'Servers', values: days.map((day) => day.serverQuanta) },
            { label: 'Everything else', values: days.map((day) => day.otherQuanta) },
          ],
    },
  });
}
