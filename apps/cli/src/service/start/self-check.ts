import { withDeadline } from '@svc/service-kit/concurrency';
import { CliError } from '../../output/errors.ts';
import type { Progress } from '../../output/progress.ts';
import { localClient, type StartedControlPlane } from './control-plane.ts';

const DEADLINE_MS = 180_000;
const PROGRAM = `python3 -c 'print("6 * 7 =", 6 * 7)'`;

/**
 * Checks that sandboxes work: creates one through the public API, runs two commands in it and destroys it. Prints the
 * duration of each step.
 * @throws CliError `self_check_failed` if a command fails
 */
export async function selfCheck(
  progress: Progress,
  service: StartedControlPlane,
  apiKey: string,
  template: string,
  stop: AbortSignal,
): Promise<void> {
  await using client = localClient(service, apiKey);
  const signal = withDeadline(stop, DEADLINE_MS);
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
          `\`${command}\` in the sandbox exited with code ${exit_code}: ${output.trim()}`,
          { next: 'run `svc doctor`; if you delete the image, the next start rebuilds it' },
        );
      },
      (output) => `${command} → ${output}`,
    );
  }
}
