/** The two cookies of a sign-on at the receiver; neither is known to the other program. */
import { readCookie, type Sessions } from '#service-kit/sessions/index.ts';
import { ticketMinutes } from './accept-assertion.ts';

type Named = Pick<Sessions, 'cookieName'>;

/** The secret of a browser that has begun, to which its assertion is bound. */
const secretName = ({ cookieName }: Named) => `${cookieName}_sign_on`;
/** The ticket of the browser that brought an assertion. */
const ticketName = ({ cookieName }: Named) => `${cookieName}_ticket`;

export interface SignOnCookies {
  secret: string | null;
  ticket: string | null;
}

export function readCookies(sessions: Named, header: string | undefined): SignOnCookies {
  return {
    secret: readCookie(header, secretName(sessions)),
    ticket: readCookie(header, ticketName(sessions)),
  };
}

export const secretCookie = (sessions: Named, secret: string) => cookie(secretName(sessions), secret);
export const ticketCookie = (sessions: Named, ticket: string) => cookie(ticketName(sessions), ticket);

/** Values of `Set-Cookie` that clear both. */
export const clearedCookies = (sessions: Named): string[] => [
  cookie(secretName(sessions), null),
  cookie(ticketName(sessions), null),
];

// Lax: a browser sends them when it follows the redirect after the form that came from the other site.
function cookie(name: string, value: string | null): string {
  const secure = name.startsWith('__Host-') ? '; Secure' : '';
  const seconds = value === null ? 0 : ticketMinutes * 60;
  return `${name}=${value ?? ''}; Path=/; HttpOnly; SameSite=Lax${secure}; Max-Age=${seconds}`;
}
