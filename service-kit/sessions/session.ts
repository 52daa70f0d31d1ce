export interface Session {
  personId: number;
  csrfToken: string;
  /** The person proved who they are in the last fifteen minutes, by signing in or by confirming. */
  isConfirmed: boolean;
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
