/** What sends an attack's traffic, the same for every class. */
export interface AttackSender {
  /** Sends at most `count` packets, or opens as many connections; returns how many. */
  send(count: number): number;
  /** Connections that the target took; null where a class has none. */
  answered(): number | null;
  /** Ends all that is open. */
  close(): void;
}
