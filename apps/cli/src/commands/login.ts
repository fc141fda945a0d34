import { createInterface } from 'node:readline/promises';
import { SvcError } from '@svc/sdk';
import { Command } from 'commander';
import { parseEmail } from '../arguments/parsers.ts';
import { clientOf, resolveConnection } from '../connection/client.ts';
import { loginFile, writeCredentials } from '../connection/credentials.ts';
import { CliError } from '../output/errors.ts';

const MAX_ATTEMPTS = 3;

/** `svc login`: exchanges an emailed code for an API key and stores it for the other commands. */
export function loginCommand(): Command {
  return new Command('login')
    .description('sign in or sign up by email; stores an API key for the other commands')
    .argument('<email>', 'address that receives the one-time code', parseEmail)
    .option('--code <digits>', 'a code that you have already received')
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
        account_token: account.token,
        ...(caFile === undefined ? {} : { ca_file: caFile }),
      });
      console.log(`signed in to ${baseUrl} as ${email} (${account.tenant_id})`);
      console.log(`the API key is stored in ${file}`);
    });
}

/** Verifies the given code, or prompts for one until it is accepted or the third attempt has failed. */
async function verify<T>(
  check: (code: string) => Promise<T>,
  given: string | undefined,
): Promise<T> {
  if (given !== undefined) return check(given);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new AbortController();
  terminal.once('close', () => closed.abort());
  try {
    for (let attempt = 1; ; attempt += 1) {
      const code = (await terminal.question('Code: ', { signal: closed.signal })).trim();
      try {
        return await check(code);
      } catch (error) {
        if (!(error instanceof SvcError && error.status === 401) || attempt >= MAX_ATTEMPTS)
          throw error;
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
  return new CliError('no_code', 'no code was entered', {
    next: 'run the command again with the code from the email: svc login <email> --code 123456',
    cause,
  });
}
