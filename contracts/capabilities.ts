/** What not every hypervisor can do: the API and the pages offer a server what its driver names. */
export const capabilities = [
  'firewall',
  'rebuild',
  'resize',
  'reset_password',
  'addresses',
  'console',
  'snapshots',
] as const;
export type Capability = (typeof capabilities)[number];

/** What consoles speak: RFB (RFC 6143), the protocol of VNC, or a terminal's text in UTF-8. */
export const consoleKinds = ['vnc', 'text'] as const;
export type ConsoleKind = (typeof consoleKinds)[number];
