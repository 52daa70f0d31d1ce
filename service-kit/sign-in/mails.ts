/** What people are mailed about their account. Plain text; the link stands alone on its line. */
import type { Mail } from '#service-kit/mail/index.ts';
import { formatTime } from '#service-kit/pages/index.ts';

interface Reader {
  email: string;
  name: string;
}

function mailOf(to: string, subject: string, paragraphs: readonly string[]): Mail {
  return { to, subject, text: `${paragraphs.join('\n\n')}\n` };
}

/** For a person whose account an operator made, or who is to get a new password. */
export function accessLinkMail(reader: Reader, url: string, lifetime: string): Mail {
  return mailOf(reader.email, 'Set your password', [
    `Hello ${reader.name},`,
    `set the password of your account by this link. It works once, for ${lifetime}:`,
    url,
    'If you did not expect this mail, ignore it.',
  ]);
}

export function resetMail(reader: Reader, url: string): Mail {
  return mailOf(reader.email, 'Reset your password', [
    `Hello ${reader.name},`,
    'a new password was requested for your account. Set it by this link. It works once, for one hour:',
    url,
    'If you did not request it, ignore this mail. Your password stays as it is.',
  ]);
}

export function invitationMail(email: string, organization: string, url: string): Mail {
  return mailOf(email, `Join ${oneLine(organization)}`, [
    'Hello,',
    `you are invited to join ${oneLine(organization)}. Accept by this link. It works once, for seven days:`,
    url,
    'If you do not know this organization, ignore this mail.',
  ]);
}

export function addedAsOwnerMail(reader: Reader, organization: string, url: string): Mail {
  return mailOf(reader.email, `You own ${oneLine(organization)}`, [
    `Hello ${reader.name},`,
    `you are now the owner of the organization ${oneLine(organization)}. Sign in with the password that you have:`,
    url,
  ]);
}

export function passwordChangedMail(reader: Reader, resetUrl: string, nowMs: number): Mail {
  return mailOf(reader.email, 'Your password was changed', [
    `Hello ${reader.name},`,
    `the password of your account was changed at ${formatTime(nowMs)}. Other sessions were ended.`,
    'If this was not you, set a new password now:',
    resetUrl,
  ]);
}

export function newBrowserMail(
  reader: Reader,
  from: { browser: string; source: string; atMs: number },
  resetUrl: string,
): Mail {
  return mailOf(reader.email, 'New sign-in to your account', [
    `Hello ${reader.name},`,
    `your account was used from a browser that is new to us: ${oneLine(from.browser)}, address ${from.source}, ${formatTime(from.atMs)}.`,
    'If this was you, no action is needed. If not, set a new password now. That ends all sessions:',
    resetUrl,
  ]);
}

export function recoveryUsedMail(reader: Reader, left: number, resetUrl: string): Mail {
  return mailOf(reader.email, 'A recovery code was used', [
    `Hello ${reader.name},`,
    `one of your recovery codes was used to sign in or to confirm an action. ${left === 1 ? 'One is' : `${left} are`} left.`,
    'If this was not you, set a new password now:',
    resetUrl,
  ]);
}

export function factorsChangedMail(reader: Reader, what: string, resetUrl: string): Mail {
  return mailOf(reader.email, 'Your second factor was changed', [
    `Hello ${reader.name},`,
    `${what}.`,
    'If this was not you, set a new password now. That ends all sessions:',
    resetUrl,
  ]);
}

/** Names come from people; a line break in one would be a paragraph of its own, or a header. */
const oneLine = (text: string) => text.replace(/\s+/g, ' ').trim();
