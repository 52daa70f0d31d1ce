/** Makes the stored form of a secret and reads it back: the only place where a TOTP secret's form at rest is decided. */
export interface Sealer {
  seal(secret: string): Promise<string>;
  open(sealed: string): Promise<string>;
}

const prefix = 'plain:';

/** Stores secrets as they are, marked so that a later sealer knows them. */
export const plainSealer: Sealer = {
  seal: async (secret) => `${prefix}${secret}`,
  async open(sealed) {
    if (!sealed.startsWith(prefix)) throw new TypeError('a sealed secret of an unknown form');
    return sealed.slice(prefix.length);
  },
};
