/**
 * The company that rents the servers out: its name, logo, colour and links stand on every page and in every mail. A process
 * works for one provider, so pages read it here instead of being handed it.
 */
import { readFileSync } from 'node:fs';
import { httpUrlSetting, optionalTextSetting, type Setting } from '#common/config/index.ts';
import { CodedError, describeError } from '#common/errors/index.ts';
import { isSafeHref } from './link.ts';

const colourSetting: Setting<string | null> = {
  name: 'SVC_PROVIDER_ACCENT',
  sentence:
    'Your color for buttons and links, such as #b3261e. Where text would not read well in it, it is made darker, or lighter on dark pages.',
  defaultText: 'a blue',
  parse(text) {
    if (text === undefined) return null;
    if (!/^#[0-9a-f]{6}$/i.test(text))
      throw new Error(`must be a color such as #b3261e, not "${text}"; in a shell, quote it`);
    return text.toLowerCase();
  },
};

const nameSetting: Setting<string> = {
  name: 'SVC_PROVIDER_NAME',
  sentence: 'Your company’s name on pages, in mails and in authenticator apps.',
  defaultText: 'svc',
  parse(text = 'svc') {
    // In the sender of a mail it stands in quotes.
    if (!/^[^\p{C}"<>\\]{1,60}$/u.test(text.trim()))
      throw new Error('must have 1 to 60 characters, none of them a quote, a bracket or a backslash');
    return text.trim();
  },
};

const supportSetting: Setting<string | null> = {
  name: 'SVC_PROVIDER_SUPPORT',
  sentence: 'Where customers get help: a URL, or mailto: and an address. Linked on every page.',
  defaultText: 'unset',
  parse(text) {
    if (text === undefined) return null;
    if (!/^(https?|mailto):/i.test(text) || !isSafeHref(text))
      throw new Error(`must be a URL, or an address such as mailto:support@example.com, not "${text}"`);
    return text;
  },
};

/** Of both server programs. */
export const providerSettings = {
  providerName: nameSetting,
  providerLogo: optionalTextSetting(
    'SVC_PROVIDER_LOGO_FILE',
    'Your logo, an SVG or PNG file of at most 100 kB. It stands in place of the name, 24 pixels high, and in the browser’s tab.',
  ),
  providerAccent: colourSetting,
  providerSupport: supportSetting,
  providerTerms: httpUrlSetting('SVC_PROVIDER_TERMS_URL', null, 'Your terms of service.'),
  providerPrivacy: httpUrlSetting('SVC_PROVIDER_PRIVACY_URL', null, 'Your privacy policy.'),
};

/** The sender of mails; `program` is named where it isn't the customers'. */
export const senderOf = (
  settings: { smtpFrom: string | null; providerName: string },
  program?: 'monitor',
): string =>
  settings.smtpFrom ?? `"${[settings.providerName, program].filter(Boolean).join(' ')}" <no-reply@localhost>`;

/** A provider as its pages show it. */
export interface Provider {
  name: string;
  /** In place of the name; null: none. */
  logo: { type: 'image/svg+xml' | 'image/png'; body: Buffer } | null;
  /** `#rrggbb`; null: ours. */
  accent: string | null;
  links: readonly { label: string; href: string }[];
}

let provider: Provider = { name: 'svc', logo: null, accent: null, links: [] };

/** Whom this process works for. */
export const presentProvider = (): Provider => provider;

/** Sets it before the first page. */
export function useProvider(one: Provider): void {
  provider = one;
}

const logoBytesMax = 100_000;
const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

/** Reads the logo; throws `config.invalid` for a file that is none. */
export function readProvider(
  settings: {
    [K in keyof typeof providerSettings]: ReturnType<(typeof providerSettings)[K]['parse']>;
  },
): Provider {
  const links = { Support: 'providerSupport', Terms: 'providerTerms', Privacy: 'providerPrivacy' } as const;
  return {
    name: settings.providerName,
    logo: settings.providerLogo === null ? null : readLogo(settings.providerLogo),
    accent: settings.providerAccent,
    links: Object.entries(links).flatMap(([label, setting]) => {
      const href = settings[setting];
      return href === null ? [] : [{ label, href }];
    }),
  };
}

function readLogo(path: string): Provider['logo'] {
  const fault = (why: string) =>
    new CodedError('config.invalid', `SVC_PROVIDER_LOGO_FILE is ${path}, which ${why}.`);
  let body: Buffer;
  try {
    body = readFileSync(path);
  } catch (error) {
    throw fault(`can't be read: ${describeError(error)}`);
  }
  if (body.length > logoBytesMax)
    throw fault(`has ${body.length} bytes; at most ${logoBytesMax} are sent with a page`);
  if (body.subarray(0, png.length).equals(png)) return { type: 'image/png', body };
  if (/^(\s|<\?xml[^>]*>|<!--[\s\S]*?-->|<!DOCTYPE[^>]*>)*<svg[\s>]/i.test(body.toString()))
    return { type: 'image/svg+xml', body };
  throw fault('is neither an SVG nor a PNG file');
}

/** Relative luminance as WCAG 2 defines it, 0 to 1, of `#rrggbb`. */
function luminance(colour: string): number {
  const [red = 0, green = 0, blue = 0] = channels(colour).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** Contrast of two colours as WCAG 2 defines it, 1 to 21. */
export function contrast(one: string, other: string): number {
  const [darker = 0, lighter = 0] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (lighter + 0.05) / (darker + 0.05);
}

const channels = (colour: string) => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16));

function mix(colour: string, other: string, part: number): string {
  const others = channels(other);
  const mixed = channels(colour).map((value, i) => Math.round(value * (1 - part) + others[i]! * part));
  return `#${mixed.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

/** The shade nearest to `colour`, on the way to `end`, that reads at 4.5:1 on all these grounds. */
function readableOn(colour: string, end: string, grounds: readonly string[]): string {
  for (let part = 0; part < 1; part += 0.04) {
    const shade = mix(colour, end, part);
    if (grounds.every((ground) => contrast(shade, ground) >= 4.5)) return shade;
  }
  return end;
}

const [white, black] = ['#ffffff', '#000000'];

/** The accent's tokens of each scheme. The grounds are those of `tokens.css`: the page, what lies on it, the surfaces of states on which least text reads. */
export function accentTokens(colour: string): Record<string, { light: string; dark: string }> {
  const surface = { light: mix(colour, white, 0.9), dark: mix(mix(colour, black, 0.4), '#15181c', 0.7) };
  const accent = {
    light: readableOn(colour, black, [surface.light, '#f3f5f7', '#fcebec']),
    dark: readableOn(colour, white, [surface.dark, '#34260c', '#12293a']),
  };
  return {
    'accent-surface': surface,
    accent,
    'accent-strong': { light: mix(accent.light, black, 0.2), dark: mix(accent.dark, white, 0.3) },
    'on-accent': { light: white, dark: '#0d1014' },
  };
}
