/** Runs a proof inside a test. When it fails, or does not detect a planted bug, the message contains all its output. */
import assert from 'node:assert/strict';

export interface ProofRun {
  failures: number;
  plantedBugsCaught: string;
}

/** `plantedBugs` is the number of planted bugs, all of which must be detected. */
export async function requireProof(
  plantedBugs: number,
  run: (report: (line: string) => void) => Promise<ProofRun>,
): Promise<void> {
  const said: string[] = [];
  const { failures, plantedBugsCaught } = await run((line) => said.push(line));
  assert.equal(failures, 0, `${failures} failures:\n${said.join('\n')}`);
  assert.equal(plantedBugsCaught, `${plantedBugs} of ${plantedBugs}`, said.join('\n'));
}
