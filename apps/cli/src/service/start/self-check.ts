import type { ErrorCode } from '@svc/contract';
import { SvcError } from '@svc/sdk';
import { withDeadline } from '@svc/service-kit/concurrency';
import { CliError } from '../../output/errors.ts';
import type { Progress } from '../../output/progress.ts';
import { localClient, type StartedControlPlane } from './control-plane.ts';

const DEADLINE_MS = 180_000;
const PROGRAM = `python3 -c 'print("6 * 7 =", 6 * 7)'`;

/** How a create is refused when the worker is cordoned, or the local account is at a limit. */
const REFUSALS: ReadonlySet<string> = new Set<ErrorCode>([
  'no_workers',
  'sandbox_limit_reached',
  'credits_exhausted',
]);

export interface SelfCheckOptions {
  readonly apiKey: string;
  readonly template: string;
  /** Whether this machine runs VMs. One that has no room for a sandbox although it runs none will never have any. */
  readonly hasVms: () => Promise<boolean>;
  /** Aborts the check. */
  readonly stop: AbortSignal;
}

/**
 * Checks that sandboxes work: creates one through the public API, runs two commands in it and destroys it. Prints the
 * duration of each step. Checks nothing if the service takes no sandbox now, because a start must adopt those that fill it.
 * @throws SvcError if a sandbox cannot be created for another reason
 * @throws CliError `self_check_failed` if a command fails
 */
export async function selfCheck(
  progress: Progress,
  service: StartedControlPlane,
  { apiKey, template, hasVms, stop }: SelfCheckOptions,
): Promise<void> {
  await using client = localClient(service, apiKey);
  const signal = withDeadline(stop, DEADLINE_MS);
  const { sandboxes } = client;
  const created = await progress
    .step(
      'create',
      () => {
        const request = { template, metadata: { purpose: 'self-check' } };
        // An account at its limit is skipped, not waited for.
        return sandboxes.create(request, { signal, maxWaitMs: 0 });
      },
      ({ vm_id }) => vm_id,
    )
    .catch(async (error: unknown) => {
      if (!(error instanceof SvcError)) throw error;
      const isRefused =
        REFUSALS.has(error.code) || (error.code === 'no_capacity' && (await hasVms()));
      if (!isRefused) throw error;
      progress.line(`self-check skipped: ${error.message}`);
      return undefined;
    });
  if (created === undefined) return;
  const id = created.vm_id;
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
          `\`${command}\` in the sandbox exited with code ${exit_code}: ${output.trim()}`,
          { next: 'run `svc doctor`; if you delete the image, the next start rebuilds it' },
        );
      },
      (output) => `${command} → ${output}`,
    );
  }
}
