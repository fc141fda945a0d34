import { SvcClient } from '@svc/sdk';
import type { Credentials } from '../../connection/credentials-file.ts';
import { CliError } from '../../output/cli-error.ts';
import type { Progress } from '../../output/progress.ts';

const DEADLINE_MS = 180_000;
const PROGRAM = `python3 -c 'print("6 * 7 =", 6 * 7)'`;

/**
 * Shows that a sandbox really runs: creates one through the public API, runs two commands in it and
 * destroys it, each with the time it took.
 */
export async function selfCheck(
  progress: Progress,
  credentials: Credentials,
  template: string,
  ca: string | undefined,
  stop: AbortSignal,
): Promise<void> {
  await using client = new SvcClient({
    baseUrl: credentials.base_url,
    apiKey: credentials.api_key,
    ...(ca === undefined ? {} : { ca }),
  });
  const signal = AbortSignal.any([stop, AbortSignal.timeout(DEADLINE_MS)]);
  const { sandboxes } = client;
  const { vm_id: id } = await progress.step(
    'create',
    () => sandboxes.create({ template, metadata: { purpose: 'self-check' } }, { signal }),
    (created) => created.vm_id,
  );
  try {
    await run('uname -sr');
    await run(PROGRAM);
  } finally {
    await progress.step('destroy', () => sandboxes.delete(id));
  }

  async function run(command: string): Promise<void> {
    await progress.step(
      'run',
      async () => {
        const { output, exit_code } = await sandboxes.exec(id, command, { signal });
        if (exit_code === 0) return output.trim();
        throw new CliError(
          'self_check_failed',
          `the sandbox ran \`${command}\` and it exited with ${exit_code}: ${output.trim()}`,
          { next: 'build the image again with `svc image build --force`' },
        );
      },
      (output) => `${command} → ${output}`,
    );
  }
}
