/** Both clocks at the same moment. */
export interface Moment {
  /** Milliseconds since 1970. */
  wallMs: number;
  /** Milliseconds since the host started. */
  uptimeMs: number;
}

export interface HostTime {
  /** Id of this kernel boot; blank when unknown. */
  bootId: string;
  read(): Moment;
}
