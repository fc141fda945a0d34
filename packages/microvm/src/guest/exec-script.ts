/** The environment variable by which a command's processes are found again. */
export const EXEC_MARK = 'SVC_EXEC_ID';

export interface ExecScriptOptions {
  readonly execId: string;
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/**
 * The text that the guest's shell runs: the mark, the environment, the directory, then the command as
 * it was given. Nothing but shell builtins comes before the command: a process more would cost time.
 */
export function execScript({ execId, command, cwd, env }: ExecScriptOptions): string {
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return [
    // The guest's SSH server is protected from the out-of-memory killer; what it runs is not.
    'echo 0 >/proc/self/oom_score_adj',
    `export ${EXEC_MARK}=${execId}`,
    ...exports,
    `cd -- ${quote(cwd)} || exit`,
    command,
  ].join('\n');
}

/** One word for a POSIX shell, whatever is in it. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
