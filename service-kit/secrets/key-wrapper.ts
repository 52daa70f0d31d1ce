/** What wraps data keys: it holds a key that is not in the database. */

export interface WrappedKey {
  wrapped: string;
  /** Which key wraps it. */
  wrappedBy: string;
}

export interface KeyWrapper {
  /** Where the key is, for messages, such as `the key file /var/lib/svc-monitor/monitor/secrets.key`. */
  readonly place: string;
  /** Makes the key where there is none. Called only for a database that has no data key yet. */
  prepare(): Promise<void>;
  /** `context` names the data key; what was wrapped for one context is not unwrapped for another. */
  wrap(key: Buffer, context: string): Promise<WrappedKey>;
  /** Throws `secrets.no_key` where the key is not there, and `secrets.wrong_key` where it is another one. */
  unwrap(wrapped: WrappedKey, context: string): Promise<Buffer>;
}
