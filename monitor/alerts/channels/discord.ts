/**
 * Discord, by a webhook of a channel. The end of an alert turns its first message green, and is a message too, because an
 * edit sends no notification. https://discord.com/developers/docs/resources/webhook
 */
import { type ChannelKind, cut, objectIn, shaped } from './channel-kind.ts';

const limits = { title: 256, description: 4096 };
const colours = { bad: 0xd92d20, warn: 0xdc6803, good: 0x079455, info: 0x1570ef };

export const discord: ChannelKind = {
  label: 'Discord',
  hint: 'In Discord: the channel’s settings, Integrations, Webhooks, New Webhook, Copy Webhook URL.',
  fields: [
    {
      name: 'url',
      label: 'Webhook URL',
      kind: 'url',
      isSecret: true,
      placeholder: 'https://discord.com/api/webhooks/…',
      hint: 'It holds the key to the channel, so no page shows it again.',
      parse: shaped(
        /^https?:\/\/[^/?#]+(\/[^?#]*)?\/webhooks\/\d+\/[\w-]+$/,
        'A webhook of Discord ends with /webhooks/, a number and a key.',
      ),
    },
  ],
  targetOf: () => 'a webhook of Discord',
  async send({ url: target = '' }, { summary, facts, url, tone, timestamp, opened }, { request }) {
    const body = JSON.stringify({
      embeds: [
        {
          title: cut(summary, limits.title),
          description: cut(
            facts.map(([name, value]) => `${name}: ${plain(value)}`).join('\n'),
            limits.description,
          ),
          ...(url ? { url } : {}),
          color: colours[tone],
          timestamp,
        },
      ],
      // No text of an alert may call people.
      allowed_mentions: { parse: [] },
    });
    if (opened) {
      const edited = await request(`${target}/messages/${opened}`, { method: 'PATCH', body });
      // It may be deleted.
      if (edited.error !== null && edited.statusCode !== 404) return { error: edited.error };
    }
    const answer = await request(`${target}?wait=true`, { body, readsAnswer: true });
    if (answer.error !== null) return { error: answer.error };
    const { id } = objectIn(answer);
    return { error: null, reference: /^\d{1,30}$/.test(String(id)) ? String(id) : undefined };
  },
};

/** Without what Discord reads as markup. */
const plain = (text: string) => text.replace(/[\\*_~`|>[\]()#]/g, '\\$&');
