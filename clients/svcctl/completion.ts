/** Completion of commands, flags and their words: the same answers for every shell, which asks `svcctl complete`. */
import type { Call } from '../calls.ts';
import { fieldsOf, findCall, flagOf, flagsOf, isGroup, wordsOf } from './arguments.ts';

const scripts = {
  bash: `_svcctl() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(svcctl complete "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _svcctl svcctl
`,
  zsh: `#compdef svcctl
_svcctl() {
  local -a found
  found=("\${(@f)$(svcctl complete "\${(@)words[2,$CURRENT]}" 2>/dev/null)}")
  compadd -a found
}
compdef _svcctl svcctl
`,
  fish: `complete -c svcctl -f -a '(svcctl complete (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
`,
} as const;

/** The script that a shell reads; null for a shell that there is none for. */
export function completionScript(shell: string): string | null {
  return shell in scripts ? scripts[shell as keyof typeof scripts] : null;
}

/** What the last of the words may become; the words before it are whole. */
export function complete(calls: readonly Call[], words: readonly string[]): string[] {
  const last = words.at(-1) ?? '';
  const before = words.slice(0, -1);
  return candidates(calls, before).filter((one) => one.startsWith(last));
}

function candidates(calls: readonly Call[], before: readonly string[]): string[] {
  const groups = [...new Set(calls.map((call) => call.group))];
  if (before.length === 0) return [...groups, 'deploy', 'configure', 'completion', 'mcp', 'help'].sort();
  if (before[0] === 'completion') return before.length === 1 ? Object.keys(scripts) : [];
  const group = calls.filter((call) => isGroup(call.group, before[0]!));
  if (before.length === 1 && group.length > 1) return group.map((call) => call.name);
  let call: Call;
  try {
    call = findCall(calls, before).call;
  } catch {
    return [];
  }
  const flag = before.at(-1)!.replace(/^--/, '');
  const field = fieldsOf(call).find(({ name }) => flagOf(name) === flag);
  if (before.at(-1)!.startsWith('--') && flagsOf(call).get(flag)?.takes)
    return field ? [...wordsOf(field.schema)] : [];
  return [...flagsOf(call).keys()].map((name) => `--${name}`).sort();
}
