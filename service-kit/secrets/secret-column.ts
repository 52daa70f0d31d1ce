/** Where a feature keeps sealed secrets. Its `store.ts` declares it; the composition hands it to `createSecrets`. */
export interface SecretColumn {
  table: string;
  /** The integer column that names a row. */
  key: string;
  /** Sealed bytes. */
  sealed: string;
  /** Clear bytes of before there was sealing; the program seals them at its start and leaves null. */
  clear: string;
}
