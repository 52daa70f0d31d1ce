/** Settings of signing staff in at an OpenID provider, the same in both server programs. */
import { optionalTextSetting, type Setting, type SettingValues, textSetting } from '#common/config/index.ts';
import { isPrivateTransport } from '#common/transport/index.ts';

const listSetting = (name: string, sentence: string): Setting<readonly string[]> => ({
  ...{ name, sentence, defaultText: 'empty' },
  parse: (text = '') =>
    text
      .split(',')
      .map((one) => one.trim())
      .filter((one) => one !== ''),
});

export const oidcSettings = {
  // Compared with what the provider calls itself, so a slash at its end counts.
  oidcIssuer: optionalTextSetting(
    'SVC_OIDC_ISSUER',
    'Issuer of the OpenID provider at which staff may sign in, exactly as it names itself, such as https://login.example.com/realms/staff. docs/operating/sign-in.md has the steps. Unset: staff sign in with passwords and passkeys only.',
  ),
  oidcClientId: optionalTextSetting('SVC_OIDC_CLIENT_ID', 'This program’s client id at that provider.'),
  oidcClientSecret: optionalTextSetting('SVC_OIDC_CLIENT_SECRET', 'The client’s secret.'),
  oidcScope: textSetting(
    'SVC_OIDC_SCOPE',
    'openid email profile',
    'Scopes that are asked for; some providers name groups only with the scope groups.',
  ),
  oidcGroupsClaim: textSetting(
    'SVC_OIDC_GROUPS_CLAIM',
    'groups',
    'The claim with a person’s groups, in the ID token or at the userinfo endpoint.',
  ),
  oidcOperatorGroups: listSetting(
    'SVC_OIDC_OPERATOR_GROUPS',
    'Groups whose members are operators, separated by commas.',
  ),
  oidcReaderGroups: listSetting(
    'SVC_OIDC_READER_GROUPS',
    'Groups whose members read only: support in operations, viewers in the monitor. Who is in no group of either list has no access.',
  ),
  oidcSecondFactorAcr: listSetting(
    'SVC_OIDC_SECOND_FACTOR_ACR',
    'Values of the claim acr that say that a second factor was shown. They are asked for (acr_values), and a sensitive change needs one of them. Empty: the claim amr counts for SVC_REQUIRE_SECOND_FACTOR, and a sensitive change needs a sign-in at the provider that is younger than five minutes.',
  ),
};

/** The provider and what its groups mean. */
export type OidcSettings = NonNullable<ReturnType<typeof readOidc>>;

type Values = SettingValues<typeof oidcSettings> & { allowInsecureHttp: boolean };

/** Null where staff sign in with passwords alone. */
export function readOidc(settings: Values) {
  const { oidcIssuer: issuer, oidcClientId: clientId, oidcClientSecret: clientSecret } = settings;
  if (issuer === null || clientId === null || clientSecret === null) return null;
  return {
    ...{ issuer, clientId, clientSecret, scope: settings.oidcScope },
    ...{ groupsClaim: settings.oidcGroupsClaim, operatorGroups: settings.oidcOperatorGroups },
    ...{ readerGroups: settings.oidcReaderGroups, secondFactorAcr: settings.oidcSecondFactorAcr },
  };
}

/** What is wrong with the settings together, or null. */
export function oidcFault(settings: Values): string | null {
  const { oidcIssuer: issuer, oidcOperatorGroups, oidcReaderGroups } = settings;
  if (issuer === null) return null;
  if (!URL.canParse(issuer) || !(settings.allowInsecureHttp || isPrivateTransport(issuer)))
    return 'SVC_OIDC_ISSUER must be an https URL, or http on this machine.';
  if (settings.oidcClientId === null || settings.oidcClientSecret === null)
    return 'SVC_OIDC_ISSUER needs SVC_OIDC_CLIENT_ID and SVC_OIDC_CLIENT_SECRET.';
  if (oidcOperatorGroups.length + oidcReaderGroups.length === 0)
    return 'SVC_OIDC_ISSUER needs SVC_OIDC_OPERATOR_GROUPS or SVC_OIDC_READER_GROUPS: without groups no person may sign in.';
  if (!settings.oidcScope.split(' ').includes('openid')) return 'SVC_OIDC_SCOPE must hold openid.';
  return null;
}
