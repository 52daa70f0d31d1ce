/** Telegram, by a bot. The end of an alert replies to its first message. https://core.telegram.org/bots/api#sendmessage */
import { type ChannelKind, codeIn, cut, objectIn, serverField, shaped } from './channel-kind.ts';

const textMax = 4096;

export const telegram: ChannelKind = {
  label: 'Telegram',
  hint: 'Create a bot with @BotFather and add it to the group or channel.',
  fields: [
    {
      name: 'token',
      label: 'Bot token',
      isSecret: true,
      placeholder: '123456789:AA…',
      parse: shaped(/^\d{3,20}:[\w-]{20,100}$/, 'A bot’s token is a number, a colon and a key.'),
    },
    {
      name: 'chat',
      label: 'Chat ID',
      placeholder: '-1001234567890',
      hint: 'A number, or @name of a public channel.',
      parse: shaped(/^(-?\d{1,20}|@\w{5,40})$/, 'A chat is a number, or @ and the name of a public channel.'),
    },
    serverField({
      preset: 'https://api.telegram.org',
      hint: 'Another one for a Bot API server of your own.',
    }),
  ],
  targetOf: ({ chat = '' }) => `chat ${chat}`,
  async send({ token, chat, server }, { summary, facts, url, opened }, { request }) {
    const lines = [summary, ...facts.map(([name, value]) => `${name}: ${value}`), ...(url ? [url] : [])];
    const answer = await request(`${server}/bot${token}/sendMessage`, {
      body: JSON.stringify({
        chat_id: chat,
        text: cut(lines.join('\n'), textMax),
        link_preview_options: { is_disabled: true },
        ...(opened
          ? { reply_parameters: { message_id: Number(opened), allow_sending_without_reply: true } }
          : {}),
      }),
      readsAnswer: true,
    });
    if (answer.error !== null) return { error: answer.error };
    const { ok, error_code, result } = objectIn(answer);
    if (ok !== true) return { error: `Telegram answered ${codeIn(error_code)}` };
    const id = (result as { message_id?: unknown } | undefined)?.message_id;
    return { error: null, reference: Number.isSafeInteger(id) ? String(id) : undefined };
  },
};
