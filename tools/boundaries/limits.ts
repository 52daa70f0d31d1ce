/** Offences that were found when their rule was made. Each number may only fall, and its line goes when it is gone. */
export interface Limits {
  /** How many circles of files that import one another there are. */
  fileCircles: number;
  /** `file:function` → its lines, for each function of more than 80. */
  longFunctions: Readonly<Record<string, number>>;
  /** `program: feature → owner` → places where SQL of the feature names a table of the owner. */
  foreignTables: Readonly<Record<string, number>>;
}

export const limits: Limits = {
  fileCircles: 0,
  longFunctions: {},
  foreignTables: {},
};
