/** What not every hypervisor can do: the API and the pages offer a server what its driver names. */
export const capabilities = ['firewall', 'rebuild', 'resize', 'reset_password', 'addresses'] as const;
export type Capability = (typeof capabilities)[number];
