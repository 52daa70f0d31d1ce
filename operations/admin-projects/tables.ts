/** The tables of this feature: only its own SQL names them (tools/boundaries). */
export const tables = ['admin_auth_failures', 'admin_projects', 'admin_tokens'] as const;
