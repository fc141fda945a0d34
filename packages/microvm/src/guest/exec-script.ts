export interface ExecScriptOptions {
  /** See `exec-mark.ts`. */
  readonly mark: number;
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Sends what goes to stderr to stdout: only on one stream do both keep their order. */
  readonly mergeOutput?: boolean;
}

/** What the SSH server is asked to run, and what it gets on its standard input. */
export interface ExecCall {
  readonly line: string;
  readonly input: string;
}

/** The guest's SSH server drops a connection, with all that runs over it, on a packet of 32 KiB and more. */
const MAX_LINE_BYTES = 16 * 1024;

/**
 * The text that the guest's shell runs: the mark, the environment, the directory, then the command as
 * it was given. Nothing but shell builtins comes before the command: a process more would cost time.
 */
export function execScript(options: ExecScriptOptions): string {
  const { mark, command, cwd, env, mergeOutput = false } = options;
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return [
    // The guest's SSH server is protected from the out-of-memory killer; what it runs is not.
    'echo 0 >/proc/self/oom_score_adj',
    ...(mergeOutput ? ['exec 2>&1'] : []),
    `echo ${mark} >/proc/self/timerslack_ns`,
    ...exports,
    `cd -- ${quote(cwd)} || exit`,
    command,
  ].join('\n');
}

/** How a script of any length gets to the guest's shell; its standard input is empty when it runs. */
export function execCall(script: string): ExecCall {
  if (Buffer.byteLength(script) <= MAX_LINE_BYTES) return { line: script, input: '' };
  return { line: 'eval "$(cat)"', input: script };
}

/** One word for a POSIX shell, whatever is in it. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
