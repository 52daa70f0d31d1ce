/** The payment gateways, by the name that `SVC_PAYMENT_GATEWAY` chooses and that is stored. */
import { optionalChoiceSetting, type SettingValues } from '#common/config/index.ts';
import { stripe } from './stripe.ts';
import { test } from './test.ts';

const gatewayKinds = { test, stripe };
export type GatewayName = keyof typeof gatewayKinds;
const gatewayNames = Object.keys(gatewayKinds) as GatewayName[];

export const gatewaySettings = {
  paymentGateway: optionalChoiceSetting(
    'SVC_PAYMENT_GATEWAY',
    gatewayNames,
    'Who charges saved cards. The test gateway takes test cards only and moves no money, so customers can give themselves credit.',
    'unset: `serve` does not start; test in the demo world',
  ),
  ...{ ...test.settings, ...stripe.settings },
};
type GatewaySettings = SettingValues<typeof gatewaySettings>;

/** What is missing for the gateway that the settings name; null: nothing. */
export function gatewayFault(settings: GatewaySettings): string | null {
  const { paymentGateway: name } = settings;
  const missing = name === null ? null : (gatewayKinds[name].missing?.(settings) ?? null);
  return missing === null ? null : `SVC_PAYMENT_GATEWAY=${name} needs ${missing}.`;
}

/** The gateway that the settings name. Commands charge no card, so they need no choice; `serve` does not start without one. */
export const createGateway = (settings: GatewaySettings, deps: Parameters<typeof test.create>[1]) =>
  gatewayKinds[settings.paymentGateway ?? 'test'].create(settings, deps);

/** Where gateways send their callbacks, and the header that signs them. */
export const gatewayCallbacks: readonly { path: string; header: string }[] = gatewayNames.flatMap((name) => {
  const header = gatewayKinds[name].callbackHeader;
  return header === undefined ? [] : { path: `/integrations/${name}`, header };
});
