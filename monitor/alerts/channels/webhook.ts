/** A webhook of the provider's own, signed as in Standard Webhooks. */
import { signDelivery } from '#service-kit/webhooks/index.ts';
import type { ChannelKind } from './channel-kind.ts';

export const webhook: ChannelKind = {
  label: 'Webhook',
  hint: 'Deliveries are signed as in Standard Webhooks; the secret is shown once, when the channel is added.',
  isSigned: true,
  fields: [
    {
      name: 'url',
      label: 'URL',
      kind: 'url',
      placeholder: 'https://example.com/hook',
      hint: 'Must be https and on the public internet.',
    },
  ],
  targetOf: ({ url = '' }) => url,
  async send({ url = '' }, { id, body }, { nowMs, signingSecret, request }) {
    const text = JSON.stringify(body);
    const headers = signDelivery([signingSecret!], id, Math.floor(nowMs / 1000), text);
    return { error: (await request(url, { body: text, headers })).error };
  },
};
