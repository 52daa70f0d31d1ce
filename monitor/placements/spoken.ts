/** An address or MAC in a sensor's report. */
export interface Spoken {
  sensorId: number;
  /** Canonical text. */
  subject: string;
}
