/** What the first call made. */
export interface Result {
  kind: string;
  id: number;
}
