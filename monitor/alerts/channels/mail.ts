/** Mail (RFC 5322). The one that says that an alert is over answers the one that opened it, so that readers show one thread. */
import { sendBySmtp } from '#service-kit/mail/index.ts';
import { type ChannelKind, type ChannelSettings, invalidField } from './channel-kind.ts';

const recipientsMax = 20;
const addressShape = /^[^\s@<>",;:\\()[\]]{1,64}@[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/i;

export const recipientsOf = ({ recipients = '' }: ChannelSettings) => [
  ...new Set(recipients.split(/[\s,;]+/).filter((part) => part !== '')),
];

export const mail: ChannelKind = {
  label: 'Mail',
  hint: 'Sent by the mail server of this installation (SVC_SMTP_URL).',
  fields: [
    {
      name: 'recipients',
      label: 'Mail addresses',
      kind: 'textarea',
      hint: `Separated by commas or lines, at most ${recipientsMax}.`,
      parse(text) {
        const recipients = recipientsOf({ recipients: text });
        const wrong = recipients.find((one) => !addressShape.test(one));
        if (wrong !== undefined) throw invalidField(`Not a mail address: ${wrong.slice(0, 80)}.`);
        if (recipients.length > recipientsMax)
          throw invalidField(`A channel has at most ${recipientsMax} mail addresses.`);
        return recipients.join(', ');
      },
    },
  ],
  targetOf: ({ recipients = '' }) => recipients,
  async send(settings, { id, openedId, subject, text, transition }, { mail: server }) {
    if (!server) return { error: 'no mail server is configured: SVC_SMTP_URL is empty' };
    const answers = transition === 'resolved' && openedId !== null ? { answersId: openedId } : {};
    const headers = { 'X-Alert-Transition': transition };
    return {
      error: await sendBySmtp(server, { to: recipientsOf(settings), subject, text, id, headers, ...answers }),
    };
  },
};
