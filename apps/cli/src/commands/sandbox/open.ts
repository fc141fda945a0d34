import { LIMITS } from '@svc/contract';
import { Command } from 'commander';
import { parseSandboxId } from '../../arguments/ids.ts';
import { integerBetween, parseDuration } from '../../arguments/parsers.ts';
import { withClient } from '../../connection/client.ts';

const HELP = `
Prints a link that opens the port in a browser or with any other client, without an API key: treat it as a
secret. The server may listen on the sandbox's loopback address. The link ends after --for, with the sandbox,
and with the API key that made it.`;

const parsePort = integerBetween(1, 65_535, 'svc sandbox open vm_… 8080');

/** `svc sandbox open`: prints a link to a port of a sandbox. */
export function openCommand(): Command {
  return new Command('open')
    .description('print a link to a server in a sandbox')
    .argument('<id>', 'sandbox id', parseSandboxId)
    .argument('<port>', 'port of the server', parsePort)
    .option(
      '--for <time>',
      'how long it may be opened, such as 15m; at most 1h',
      parseDuration,
      LIMITS.portLinkSecondsDefault,
    )
    .addHelpText('after', HELP)
    .action((id: string, port: number, { for: seconds }: { for: number }) =>
      withClient(async (client, signal) => {
        const request = { port, expires_in_seconds: seconds };
        const { url } = await client.sandboxes.link(id, request, { signal });
        console.log(url);
      }),
    );
}
