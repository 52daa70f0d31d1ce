/**
 * What the portal and the operators' console draw alike: they may not import each other, and a customer and the operator who
 * helps them should see the same thing.
 *
 * Nothing here asks who is looking: whoever calls has made sure that these people may see it.
 */
export { requestsByKeyTable } from './requests-by-key.ts';
export { actionWords, serverActionsTable } from './server-actions.ts';
export { changingStatuses } from './server-statuses.ts';
export { spendingChart } from './spending-chart.ts';
