/** What an order would come to, in words: at the top of the deploy form and above its buttons. */
import type { ServerForecast } from '#operations/ordering/index.ts';
import {
  type Content,
  estimate,
  formatMoney,
  formatMoneyAbout,
  type Html,
  html,
  prose,
  type Tone,
} from '#service-kit/pages/index.ts';

/** The forecast of one choice, by the order's own rules. */
export interface Estimate {
  planName: string;
  hourlyQuanta: number;
  monthlyCapQuanta: number;
  /** Null where the choice can't be an order. */
  forecast: ServerForecast | null;
  /** Why it can't. */
  faults: readonly string[];
}

const refusals: Record<string, string> = {
  credit_required: 'Another server needs credit above zero or a saved card. Add one of them under Billing.',
  hourly_not_eligible:
    'Your workspace is not eligible for hourly billing yet. Add credit or a card under Billing.',
  no_billing_profile: 'Your workspace has no billing profile. Add one under Settings.',
  account_suspended: 'Your workspace is suspended. Add credit under Billing.',
  account_closed: 'Your workspace is closed.',
  deploy_rate: 'Your workspace has reached its limit of deployments per hour. Try again later.',
};

function refusalOf(reason: string, planName: string): string {
  if (reason === 'capacity_unavailable')
    return `There is no room for another ${planName} right now. Choose another plan or location, or try again later.`;
  return refusals[reason] ?? 'An order would be refused right now.';
}

/** Whether an order would go through, said before the form is filled in, in the words of its refusal. */
export function deployState(choice: Estimate | null): { tone: Tone; text: string } {
  if (choice === null) return { tone: 'warn', text: 'Nothing can be ordered right now.' };
  const { planName, forecast } = choice;
  if (forecast === null) return { tone: 'bad', text: 'Nothing was ordered. Correct the marked fields.' };
  if (forecast.reason !== null) return { tone: 'warn', text: refusalOf(forecast.reason, planName) };
  if ((forecast.dueQuanta ?? 0) > 0)
    return {
      tone: 'info',
      text: 'We charge your default card for one month of the plan. The amount becomes credit, and hours are charged to the credit.',
    };
  const credit = forecast.balanceQuanta === null ? '' : ` of ${formatMoneyAbout(forecast.balanceQuanta)}`;
  return { tone: 'good', text: `Nothing is due now. Hours are charged to your credit${credit}.` };
}

/** What the choice comes to, above the form's buttons. */
export function estimateBox(choice: Estimate | null, checkPath: string): Html {
  return estimate({ id: 'estimate', url: checkPath }, choice !== null && linesOf(choice));
}

function linesOf(choice: Estimate): Content {
  const { planName, hourlyQuanta, monthlyCapQuanta, forecast, faults } = choice;
  return [
    html`<p><strong>${planName}</strong> ${formatMoney(hourlyQuanta)} an hour, at most ${formatMoney(monthlyCapQuanta)} a month</p>`,
    forecast?.reason === null && html`<p class="hint">${dueOf(forecast)}</p>`,
    forecast !== null &&
      forecast.reason !== null &&
      html`<p class="field-error">■ ${refusalOf(forecast.reason, planName)}</p>`,
    faults.map((fault) => html`<p class="field-error">■ ${prose(fault)}</p>`),
  ];
}

function dueOf({ dueQuanta, afterFirstDayQuanta }: ServerForecast): string {
  const left =
    afterFirstDayQuanta === null
      ? ''
      : ` Credit after its first day: ${formatMoneyAbout(afterFirstDayQuanta)}.`;
  if (dueQuanta === null || dueQuanta === 0) return `Due now: nothing.${left}`;
  return `Due now: ${formatMoney(dueQuanta)} by your saved card.${left}`;
}
