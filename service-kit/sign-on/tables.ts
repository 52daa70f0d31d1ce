/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['sign_on_accounts', 'sign_on_answers', 'sign_on_keys', 'sign_on_peers'] as const;
