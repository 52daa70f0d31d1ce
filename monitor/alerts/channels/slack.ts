/**
 * Slack, by a bot's token (`chat.postMessage`): a webhook of Slack does not say which message it made, and without that no
 * reply can go into its thread. https://api.slack.com/methods/chat.postMessage
 */
import { type ChannelKind, codeIn, cut, objectIn, serverField, shaped } from './channel-kind.ts';

/** Slack cuts a text here. */
const textMax = 3500;
/** What Slack reads as markup in a text. */
const plain = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

export const slack: ChannelKind = {
  label: 'Slack',
  hint: 'Create a Slack app with the scope chat:write, install it, and invite it to the channel.',
  fields: [
    {
      name: 'token',
      label: 'Bot token',
      isSecret: true,
      placeholder: 'xoxb-…',
      parse: shaped(/^xox[a-z]-[\w-]{10,200}$/, 'A bot token of Slack begins with xoxb-.'),
    },
    {
      name: 'channel',
      label: 'Channel ID',
      placeholder: 'C0123456789',
      hint: 'In Slack: the channel’s name, then About.',
      parse: shaped(/^[A-Z0-9]{3,30}$/, 'An ID of a channel is in capitals and digits, such as C0123456789.'),
    },
    serverField({ preset: 'https://slack.com', hint: 'Another one for GovSlack.' }),
  ],
  targetOf: ({ channel = '' }) => `channel ${channel}`,
  async send({ token, channel, server }, { summary, facts, url, opened }, { request }) {
    const lines = [
      `*${plain(summary)}*`,
      ...facts.map(([name, value]) => `${name}: ${plain(value)}`),
      ...(url ? [`<${url}|Open the alert>`] : []),
    ];
    const answer = await request(`${server}/api/chat.postMessage`, {
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({
        channel,
        text: cut(lines.join('\n'), textMax),
        unfurl_links: false,
        ...(opened ? { thread_ts: opened } : {}),
      }),
      readsAnswer: true,
    });
    if (answer.error !== null) return { error: answer.error };
    const { ok, error, ts } = objectIn(answer);
    if (ok !== true) return { error: `Slack answered ${codeIn(error)}` };
    return { error: null, reference: typeof ts === 'string' ? ts : undefined };
  },
};
