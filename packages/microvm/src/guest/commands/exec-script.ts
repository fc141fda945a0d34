export interface ExecScriptOptions {
  /** See `exec-mark.ts`. */
  readonly mark: number;
  readonly command: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
}

/** A command line for the SSH server, and the command's standard input. */
export interface ExecCall {
  readonly line: string;
  readonly input: string;
}

/** The guest's SSH server drops the whole connection when it receives a packet of 32 KiB or more. */
const MAX_LINE_BYTES = 16 * 1024;

/**
 * The script for the guest's shell: sets the mark, the environment and the directory, then runs the unchanged command.
 * Only shell builtins precede the command, because every extra process costs time.
 */
export function execScript(options: ExecScriptOptions): string {
  const { mark, command, cwd, env } = options;
  const exports = Object.entries(env).map(([name, value]) => `export ${name}=${quote(value)}`);
  return [
    // The guest's SSH server is protected from the out-of-memory killer. Its commands must not be.
    'echo 0 >/proc/self/oom_score_adj',
    `echo ${mark} >/proc/self/timerslack_ns`,
    ...exports,
    `cd -- ${quote(cwd)} || exit`,
    command,
  ].join('\n');
}

/** Passes a script of any length to the guest's shell. The script itself has an empty standard input. */
export function execCall(script: string): ExecCall {
  if (Buffer.byteLength(script) <= MAX_LINE_BYTES) return { line: script, input: '' };
  return { line: 'eval "$(cat)"', input: script };
}

/** Quotes any text as one word for a POSIX shell. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
