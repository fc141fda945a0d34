import { createInterface } from 'node:readline/promises';
import { SvcError } from '@svc/sdk';
import { Command } from 'commander';
import { parseEmail } from '../arguments/email.ts';
import { writeCredentials } from '../connection/credentials-file.ts';
import { loginFile } from '../connection/places.ts';
import { clientOf, resolveConnection } from '../connection/resolve.ts';
import { CliError } from '../output/cli-error.ts';

const TRIES = 3;

/** `svc login`: exchanges a mailed code for an API key and keeps it for the other commands. */
export function loginCommand(): Command {
  return new Command('login')
    .description('sign in or sign up by email; keeps an API key for the other commands')
    .argument('<email>', 'address that the one-time code is mailed to', parseEmail)
    .option('--code <digits>', 'a code that was mailed before')
    .action(async (email: string, { code }: { code?: string }) => {
      const { baseUrl, caFile } = await resolveConnection();
      await using client = await clientOf({ baseUrl, caFile, apiKey: undefined });
      if (code === undefined) {
        const { message } = await client.tenants.requestCode(email);
        console.error(message);
      }
      const account = await verify((text) => client.tenants.verify(email, text), code);
      const file = loginFile();
      await writeCredentials(file, {
        base_url: baseUrl,
        api_key: account.api_key,
        email,
        tenant_id: account.tenant_id,
        ...(caFile === undefined ? {} : { ca_file: caFile }),
      });
      console.log(`signed in to ${baseUrl} as ${email} (${account.tenant_id})`);
      console.log(`the API key is kept in ${file}`);
    });
}

/** Verifies the given code, or asks for one until it is right or three were wrong. */
async function verify<T>(
  check: (code: string) => Promise<T>,
  given: string | undefined,
): Promise<T> {
  if (given !== undefined) return check(given);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  terminal.once('close', () => closed.abort());
  try {
    for (let tries = 1; ; tries += 1) {
      const code = (await terminal.question('Code: ', { signal: closed.signal })).trim();
      try {
        return await check(code);
      } catch (error) {
        if (!(error instanceof SvcError && error.status === 401) || tries >= TRIES) throw error;
        console.error('That code is not valid; try again.');
      }
    }
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') throw noCode(error);
    throw error;
  } finally {
    terminal.close();
  }
}

function noCode(cause: unknown): CliError {
  return new CliError('no_code', 'no code was given', {
    next: 'run it again with the code that was mailed: svc login <email> --code 123456',
    cause,
  });
}
