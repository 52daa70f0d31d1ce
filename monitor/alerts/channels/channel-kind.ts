/** What a kind of alert channel is. A new kind is one file beside this one, named in `index.ts`. */
import { CodedError } from '#common/errors/index.ts';
import type { SmtpSettings } from '#service-kit/mail/index.ts';
import type { Answer, DeliveryRequest } from '#service-kit/webhooks/index.ts';
import type { Notification } from '../notification.ts';

/** What was typed into the fields of a channel, by their names. */
export type ChannelSettings = Readonly<Record<string, string>>;

export interface ChannelField {
  name: string;
  label: string;
  kind?: 'text' | 'url' | 'textarea';
  /** Sealed in the database, and shown by no page. A kind has one at most. */
  isSecret?: true;
  isOptional?: true;
  /** Used where the field is left empty. */
  preset?: string;
  placeholder?: string;
  hint?: string;
  /** The value as stored; throws `alerts.invalid` for what may not be one. Without it, any text in one line. */
  parse?(text: string): string;
}

export interface Sending {
  /** Null: no mail server is configured. */
  mail: SmtpSettings | null;
  /** Of a kind that is signed. */
  signingSecret: Buffer | null;
  nowMs: number;
  signal: AbortSignal;
  /** One HTTP request with a body of JSON. Never throws. */
  request(url: string, request: DeliveryRequest): Promise<Answer>;
}

/** What came of a notification. */
export interface Sent {
  /** Null when the receiver took it; else why not, in our words. */
  error: string | null;
  /** How the receiver names the message, for the one that says that it is over. */
  reference?: string | undefined;
}

export interface ChannelKind {
  label: string;
  /** What a person has to do there first. */
  hint: string;
  fields: readonly ChannelField[];
  /** A signing secret is made with the channel and shown once. */
  isSigned?: true;
  /** The receiver may be in the provider's own network, and without TLS. Its path is fixed, and its answer is not shown. */
  isOwnNetwork?: true;
  /** An open alert is sent again after so many seconds: the receiver forgets what is not repeated. */
  repeatSeconds?: number;
  /** Where it sends to, in a few words without a secret. */
  targetOf(settings: ChannelSettings): string;
  /** One attempt. Never throws. */
  send(settings: ChannelSettings, notification: Notification, sending: Sending): Promise<Sent>;
}

/** What is wrong with a field, and what to type. */
export function invalidField(message: string): CodedError {
  return new CodedError('alerts.invalid', message);
}

/** Throws `message` for a text of another shape. */
export const shaped = (shape: RegExp, message: string) => (text: string) => {
  if (!shape.test(text)) throw invalidField(message);
  return text;
};

/** The base of a service's addresses. */
export const serverField = (
  rest: Omit<ChannelField, 'name' | 'kind' | 'parse' | 'label'> & { label?: string },
): ChannelField => ({
  ...{ name: 'server', label: 'Server', kind: 'url', ...rest },
  parse: (text) => text.replace(/\/+$/, ''),
});

/** A text of at most so many UTF-16 units. */
export const cut = (text: string, most: number) =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

/** The answer's JSON object; empty for anything else. */
export function objectIn({ body }: Answer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body ?? '');
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

/** A code or number of a receiver, for an error of ours: nothing else of what it says is kept. */
export const codeIn = (value: unknown): string => (/^[\w.-]{1,60}$/.exec(String(value)) ?? ['an error'])[0];
