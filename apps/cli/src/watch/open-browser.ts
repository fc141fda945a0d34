import { spawn } from 'node:child_process';

/** The program that opens a link in the user's browser, on this platform; undefined where there is no display. */
function opener(environment: NodeJS.ProcessEnv): string | undefined {
  if (process.platform === 'darwin') return 'open';
  return environment.DISPLAY || environment.WAYLAND_DISPLAY ? 'xdg-open' : undefined;
}

/** Opens a link in the user's browser. Where that is not possible, nothing happens: the user has the link too. */
export function openBrowser(link: string): void {
  const program = opener(process.env);
  if (program === undefined) return;
  spawn(program, [link], { stdio: 'ignore', detached: true })
    .on('error', () => undefined)
    .unref();
}
