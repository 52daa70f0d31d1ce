/** What a person reads who was not signed in: why, and what to do now. */
import { type Content, type Html, html, link } from '#service-kit/pages/index.ts';
import { alone } from '#service-kit/sign-in/index.ts';
import type { Refusal } from './accept-assertion.ts';

interface RefusalText {
  status: number;
  title: string;
  text: string;
}

const again = 'Follow the link in the other console again, or sign in here with your password.';

const refusals: Readonly<Record<Refusal, RefusalText>> = {
  not_genuine: {
    status: 403,
    title: 'This sign-on is not valid',
    text: `It was not signed by the console that this one trusts, or it was changed on the way. ${again} If it happens again, an operator has to compare the keys under Single sign-on.`,
  },
  wrong_audience: {
    status: 403,
    title: 'This sign-on is for another program',
    text: `It was made for a console with another key. ${again}`,
  },
  expired: {
    status: 403,
    title: 'This sign-on has expired',
    text: `It is valid for one minute. ${again}`,
  },
  not_yet_valid: {
    status: 403,
    title: 'The clocks differ',
    text: 'The clock of the other console is more than 30 seconds ahead of the clock of this one. Sign in here with your password, and tell an operator.',
  },
  bad_path: {
    status: 400,
    title: 'This link leads nowhere',
    text: 'A link from the other console must lead to a page of this one. Nothing was opened.',
  },
  not_accepted: {
    status: 403,
    title: 'Single sign-on is off',
    text: 'This console does not accept sign-ons from another one. Sign in here with your password.',
  },
  used_before: {
    status: 403,
    title: 'This sign-on was used before',
    text: `Each one works once. ${again}`,
  },
  other_browser: {
    status: 403,
    title: 'This sign-on was not begun in this browser',
    text: `A sign-on must begin and end in the same browser, within ten minutes. ${again}`,
  },
  not_linked: {
    status: 403,
    title: 'Your accounts are not linked yet',
    text: 'Sign in here once with your password, then link your two accounts. From then on the links between the consoles need no password.',
  },
  no_access: {
    status: 403,
    title: 'Your account here has no access',
    text: 'The account that yours is linked with was deactivated, or is no account of an operator any more. Ask another operator of this console.',
  },
  no_second_factor: {
    status: 403,
    title: 'A second factor is required',
    text: 'This console requires a second factor, and you signed in to the other console without one. Sign in here with your password and set one up, or sign in to the other console with one.',
  },
  too_many: {
    status: 429,
    title: 'Too many sign-ons',
    text: 'Wait ten minutes, then try again, or sign in here with your password.',
  },
};

export const statusOf = (refusal: Refusal): number => refusals[refusal].status;

/** `actions`: other ways on than signing in. */
export function refusalPage(area: string, refusal: Refusal, actions?: Content): Html {
  const { title, text } = refusals[refusal];
  const signIn = link('/sign-in', 'Sign in with a password', { kind: 'primary' });
  return alone(area, title, [
    html`<p>${text}</p>`,
    html`<div class="form-buttons">${actions ?? signIn}</div>`,
  ]);
}
