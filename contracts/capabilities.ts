/** What not every hypervisor can do: the API and the pages offer a server what its driver names. */
export const capabilities = [
  'firewall',
  'rebuild',
  'resize',
  'reset_password',
  'addresses',
  'console',
  'snapshots',
  'rescue',
  'iso',
  'speed_limit',
] as const;
export type Capability = (typeof capabilities)[number];

/** What images are for: servers are made from a `system`, start from a `rescue` in place of their disk, and have an `iso` in their CD drive. */
export const imageKinds = ['system', 'rescue', 'iso'] as const;
export type ImageKind = (typeof imageKinds)[number];

/** What consoles speak: RFB (RFC 6143), the protocol of VNC, or a terminal's text in UTF-8. */
export const consoleKinds = ['text', 'vnc'] as const;
export type ConsoleKind = (typeof consoleKinds)[number];
