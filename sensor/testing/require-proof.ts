/** Runs a proof inside a test. Where it fails or a planted bug passes unnoticed, the message has all that it said. */
import assert from 'node:assert/strict';

export interface ProofRun {
  failures: number;
  plantedBugsCaught: string;
}

/** `plantedBugs` is how many there are, all of which must be noticed. */
export async function requireProof(
  plantedBugs: number,
  run: (report: (line: string) => void) => Promise<ProofRun>,
): Promise<void> {
  const said: string[] = [];
  const { failures, plantedBugsCaught } = await run((line) => said.push(line));
  assert.equal(failures, 0, `${failures} failures:\n${said.join('\n')}`);
  assert.equal(plantedBugsCaught, `${plantedBugs} of ${plantedBugs}`, said.join('\n'));
}
