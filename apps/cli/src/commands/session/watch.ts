import { hasDesktop, LIMITS } from '@svc/contract';
import { Command } from 'commander';
import { parseSessionId } from '../../arguments/ids.ts';
import { integerBetween } from '../../arguments/parsers.ts';
import { connect } from '../../connection/client.ts';
import { CliError } from '../../output/errors.ts';
import { withInterrupt } from '../../process-lifetime.ts';
import { findAccess } from '../../sessions/find-access.ts';

const HELP = `
Serves a page on 127.0.0.1 that shows the desktop live, and prints the link to it. A link works once; when the page is
closed, another one is printed. The page ends with the session, or with Ctrl-C.`;

const parseFps = integerBetween(1, LIMITS.viewFpsMax, '--fps 2');
const parsePort = integerBetween(1, 65_535, '--port 8100');

interface Options {
  readonly control?: boolean;
  readonly fps?: number;
  readonly port?: number;
  readonly open: boolean;
}

/** `svc session watch`: shows the desktop of a session in a browser. */
export function watchCommand(): Command {
  return new Command('watch')
    .description('show the desktop of a session in a browser (template cua)')
    .argument('<id>', 'session id', parseSessionId)
    .option('--control', 'also use its mouse and keyboard')
    .option('--fps <n>', `most pictures a second; default: ${LIMITS.viewFpsDefault}`, parseFps)
    .option('--port <port>', 'port of the page; default: any that is free', parsePort)
    .option('--no-open', 'only print the link')
    .addHelpText('after', HELP)
    .action((id: string, options: Options) =>
      withInterrupt((signal) => watch(id, options, signal)),
    );
}

async function watch(id: string, options: Options, signal: AbortSignal): Promise<void> {
  await using client = await connect();
  const { record, access } = await findAccess(id, client, signal);
  if (!hasDesktop(record.template)) {
    throw new CliError('no_desktop', `the template ${record.template} has no desktop`, {
      next: 'start a session with `svc session start --template cua`',
    });
  }
  const { watchSession } = await import('../../watch/watch-session.ts');
  const { openBrowser } = await import('../../watch/open-browser.ts');
  const { control = false, fps, port = 0, open } = options;
  await watchSession((more) => client.sessions.connect(access, more), {
    session: id,
    control,
    fps,
    port,
    signal,
    onLink: (link, isFirst) => {
      if (!isFirst) console.error('the page was closed; to see it again, open');
      console.log(link);
      if (isFirst && open) openBrowser(link);
    },
  });
  console.error(signal.aborted ? 'watching has ended' : 'the session has ended');
}
