/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = [
  'passkey_challenges',
  'passkeys',
  'recovery_codes',
  'sign_in_steps',
  'totp_secrets',
] as const;
