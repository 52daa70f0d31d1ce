export interface Session {
  personId: number;
  csrfToken: string;
  /** The person proved who they are in the last fifteen minutes, by signing in or by confirming. */
  isConfirmed: boolean;
  /** When the person last proved who they are. */
  authenticatedAtMs: number;
  /** A second factor was shown in this session, at sign-in or since. */
  hasSecondFactor: boolean;
}

/** What a person proved before a session is started. */
export interface SessionProof {
  hasSecondFactor: boolean;
  /**
   * When it was proved; absent: just now. A session that follows from another one is no younger than that one: it is
   * confirmed no longer, and ends no later.
   */
  authenticatedAtMs?: number;
}

export interface SessionSummary {
  /** Names the session in `endOne`. */
  id: string;
  startedAt: Date;
  lastSeenAt: Date;
  source: string | null;
  userAgent: string | null;
  /** The one that asks. */
  isCurrent: boolean;
}
