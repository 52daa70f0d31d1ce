/** What `assessment-kills` must notice, by name: statements as a program with this fault would send them. */
export const plantedBugs: Readonly<Record<string, (text: string) => string>> = {
  /** The count at the end is not owed by the next run. */
  uses_forgotten: (text) =>
    text.replace(
      'vulnerability_uses_state set is_outdated = true',
      'vulnerability_uses_state set is_outdated = false',
    ),
  /** Servers whose software was compared are visited only by the run that compared it. */
  servers_forgotten: (text) =>
    text.replace(/update vulnerability_servers s set due_at = svc_now\(\) where/, '$& false and'),
  /** What was told is told again with every check. */
  told_again: (text) => text.replaceAll('coalesce(n.seq, 0)', '0'),
};
