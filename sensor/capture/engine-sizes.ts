/** Sizes of an engine's tables. */
export interface EngineSizes {
  flowsMax: number;
  buffersMax: number;
  queriesMax: number;
  answersMax: number;
  remoteHostsMax: number;
  usageRowsMax: number;
  /** Number of rows, addresses and conversations above which noise gets no new one. */
  noiseRowsMax: number;
}
